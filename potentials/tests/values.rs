//! Every energy at points where its value is plain arithmetic, or known from its paper.

use potentials::many_body::{RadiusOfGyration, StillingerWeber, SuttonChen, Tersoff};
use potentials::*;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, LN_2, PI};

fn prepare<E: Energy>(p: &[f64]) -> E::Prepared<f64> {
    assert_eq!(p.len(), <E::Params<f64> as Record<f64>>::LEN);
    E::prepare::<f64>(&E::Params::from_fn(|k| p[k]))
}
fn pair<E: PairEnergy>(p: &[f64], r: f64) -> f64 {
    E::energy::<f64, f64>(Distance::new(r), &prepare::<E>(p))
}
fn bond<E: BondEnergy>(p: &[f64], r: f64) -> f64 {
    E::energy::<f64, f64>(Distance::new(r), &prepare::<E>(p))
}
fn angle<E: AngleEnergy>(p: &[f64], theta: f64) -> f64 {
    E::energy::<f64, f64>(Angle::from_sin_cos(theta.sin(), theta.cos()), &prepare::<E>(p))
}
fn dihedral<E: DihedralEnergy>(p: &[f64], phi: f64) -> f64 {
    E::energy::<f64, f64>(Dihedral::from_sin_cos(phi.sin(), phi.cos()), &prepare::<E>(p))
}
fn tuple<E: TupleEnergy<N>, const N: usize>(p: &[f64], r: [[f64; 3]; N]) -> f64 {
    E::energy::<f64, f64>(r.map(Vec3::constant), &prepare::<E>(p))
}
fn field<E: FieldEnergy>(p: &[f64], x: [f64; 3]) -> f64 {
    E::energy::<f64, f64>(Vec3::constant(x), &prepare::<E>(p))
}

#[track_caller]
fn is(got: f64, want: f64) {
    assert!((got - want).abs() <= 2e-14 * want.abs().max(1.0), "{got}, not {want}");
}

#[test]
fn pairs() {
    use potentials::pair::*;
    is(pair::<LennardJones>(&[0.5, 2.0], 2.0 * 2_f64.powf(1.0 / 6.0)), -0.5);
    is(pair::<LennardJones>(&[0.5, 2.0], 4.0), 2.0 * (1.0 / 4096.0 - 1.0 / 64.0));
    is(pair::<Lj96>(&[0.5, 2.0], 4.0), 2.0 * (1.0 / 512.0 - 1.0 / 64.0));
    is(pair::<Lj96>(&[0.5, 2.0], 2.0 * 1.5_f64.cbrt()), -0.5 * 16.0 / 27.0);
    // 14 and 7: the constant is 14/7 × 2¹ = 4; the depth is ε for any exponents
    is(pair::<Mie>(&[0.5, 2.0, 14.0, 7.0], 4.0), 2.0 * (1.0 / 16384.0 - 1.0 / 128.0));
    let (n, m) = (11.5, 5.2);
    is(pair::<Mie>(&[0.5, 2.0, n, m], 2.0 * (n / m).powf(1.0 / (n - m))), -0.5);
    is(pair::<Mie>(&[0.5, 2.0, 12.0, 6.0], 2.3), pair::<LennardJones>(&[0.5, 2.0], 2.3));
    is(pair::<Buckingham>(&[3.0, 0.5, 64.0], 2.0), 3.0 * (-4_f64).exp() - 1.0);
    is(pair::<BornMayerHuggins>(&[3.0, 0.5, 1.0, 64.0, 512.0], 2.0), 3.0 * (-2_f64).exp() - 1.0 - 2.0);
    is(pair::<Morse>(&[3.0, 2.0, 1.5], 1.5), -3.0);
    is(pair::<Morse>(&[3.0, 2.0, 1.5], 1.5 + LN_2 / 2.0), 3.0 * (0.25 - 1.0));
    is(pair::<Yukawa>(&[3.0, 0.5], 2.0), 1.5 * (-1_f64).exp());
    is(pair::<Gaussian>(&[3.0, 0.25], 2.0), -3.0 * (-1_f64).exp());
    is(pair::<SoftCosine>(&[3.0, 2.0], 1.0), 3.0);
    is(pair::<SoftCosine>(&[3.0, 2.0], 0.5), 3.0 * (1.0 + 0.5_f64.sqrt()));
    let e = |d: f64| (-2.0 * d).exp();
    let screening = 0.18175 * e(3.1998) + 0.50986 * e(0.94229) + 0.28022 * e(0.4029) + 0.02817 * e(0.20162);
    is(pair::<Zbl>(&[3.0, 4.0], 0.5), 6.0 * screening);
    // bare charges when they touch
    is(pair::<Zbl>(&[3.0, 4.0], 1e-16) * 1e-16, 3.0);
    is(pair::<Coulomb>(&[], 2.0), 0.5);
    is(pair::<CoulombDebye>(&[0.5], 2.0), 0.5 * (-1_f64).exp());
}

fn remainders<E: PairEnergy>(p: &[f64], r: f64) -> [f64; 3] {
    let p = prepare::<E>(p);
    let r = Distance::new(r);
    [E::energy::<f64, f64>(r, &p), E::excluded::<f64, f64>(r, &p), E::own(&p)]
}

#[test]
fn charges_with_an_end() {
    use potentials::pair::{DampedShiftedForce, ReactionField};
    // a conductor beyond rc = 2: k = 1/2rc³ = 1/16, c = 1/2 + 4/16
    let conductor = [1.0 + 1.0 / 16.0 - 0.75, 1.0 / 16.0 - 0.75, -0.375];
    for (got, want) in remainders::<ReactionField>(&[0.0, 2.0], 1.0).into_iter().zip(conductor) {
        is(got, want);
    }
    // vacuum: 1/r shifted
    is(pair::<ReactionField>(&[1.0, 2.0], 1.0), 0.5);
    // water: k = 77/157/8, c = 3·78/157/2
    is(pair::<ReactionField>(&[78.0, 2.0], 1.0), 1.0 + 77.0 / 1256.0 - 234.0 / 314.0);
    // undamped with rc = 2: v = 1/2, v′ = −1/4, s = 1; E(1) = 1 − 1 + 1/4
    for (got, want) in remainders::<DampedShiftedForce>(&[0.0, 2.0], 1.0).into_iter().zip([0.25, -0.75, -0.5])
    {
        is(got, want);
    }
    // damped: erfc(½) and erfc(1) from tables
    let (half, one) = (0.479_500_122_186_953_5, 0.157_299_207_050_285_13);
    let slope = one / 4.0 + (-1_f64).exp() / PI.sqrt() / 2.0;
    let want = half - one / 2.0 + slope * (1.0 - 2.0);
    let [e, excluded, own] = remainders::<DampedShiftedForce>(&[0.5, 2.0], 1.0);
    is(e, want);
    is(excluded, want - 1.0);
    is(own, -((one / 2.0 + 2.0 * slope) / 2.0 + 0.5 / PI.sqrt()));
}

#[test]
fn bonds() {
    use potentials::bond::*;
    is(bond::<HarmonicBond>(&[4.0, 1.5], 2.0), 0.5);
    is(bond::<MorseBond>(&[3.0, 2.0, 1.5], 1.5 + LN_2 / 2.0), 0.75);
    is(bond::<G96Bond>(&[4.0, 1.0], 2.0), 9.0);
    is(bond::<QuarticBond>(&[1.0, 3.0, 2.0, 5.0], 3.0), 12.0 + 16.0 + 80.0);
    is(bond::<Fene>(&[2.0, 2.0, 0.0, 0.0], 1.0), -4.0 * 0.75_f64.ln());
    is(bond::<Fene>(&[2.0, 2.0, 0.5, 1.0], 1.0), -4.0 * 0.75_f64.ln() + 0.5);
    is(bond::<Fene>(&[2.0, 2.0, 0.5, 1.0], 1.2), -4.0 * 0.64_f64.ln());
    assert!(bond::<Fene>(&[2.0, 2.0, 0.0, 0.0], 2.5).is_nan());
}

#[test]
fn angles() {
    use potentials::angle::*;
    is(angle::<HarmonicAngle>(&[8.0, FRAC_PI_2 - 0.5], FRAC_PI_2), 1.0);
    is(angle::<CosineSquaredAngle>(&[8.0, FRAC_PI_3], FRAC_PI_2), 1.0);
    is(angle::<CosineAngle>(&[8.0], FRAC_PI_3), 12.0);
    is(angle::<QuarticAngle>(&[1.0, 3.0, 2.0, 5.0], 2.0), 10.0);
    for n in 0..=6 {
        let (k, n, theta0, theta) = (2.5, f64::from(n), 0.7, 1.3);
        is(angle::<PeriodicAngle>(&[k, n, theta0], theta), k * (1.0 + (n * theta - theta0).cos()));
    }
}

#[test]
fn dihedrals() {
    use potentials::dihedral::*;
    for step in -36..36 {
        let phi = f64::from(step) * 5_f64.to_radians() + 0.01;
        for n in 0..=6 {
            let (k, n, phi0) = (2.5, f64::from(n), 0.7);
            is(dihedral::<PeriodicDihedral>(&[k, n, phi0], phi), k * (1.0 + (n * phi - phi0).cos()));
        }
        let k = [1.5, -0.5, 2.0, 0.25];
        let want = 0.5
            * (k[0] * (1.0 + phi.cos())
                + k[1] * (1.0 - (2.0 * phi).cos())
                + k[2] * (1.0 + (3.0 * phi).cos())
                + k[3] * (1.0 - (4.0 * phi).cos()));
        is(dihedral::<OplsDihedral>(&k, phi), want);
    }
    let c = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    is(dihedral::<RyckaertBellemans>(&c, PI), 63.0);
    is(dihedral::<RyckaertBellemans>(&c, 0.0), 1.0 - 2.0 + 4.0 - 8.0 + 16.0 - 32.0);
    // 120 degrees: cos ψ = 1/2
    is(dihedral::<RyckaertBellemans>(&c, 2.0 * FRAC_PI_3), 6.0);
    // from 170 to −170 degrees it is 20 degrees
    let p = [18.0, 170_f64.to_radians()];
    is(dihedral::<HarmonicDihedral>(&p, -170_f64.to_radians()), 9.0 * 20_f64.to_radians().powi(2));
}

#[test]
fn tuples() {
    use potentials::tuple::*;
    // a right angle between arms of 3 and 4, whose ends are 5 apart
    let arms = [[0.0; 3], [3.0, 0.0, 0.0], [3.0, 4.0, 0.0]];
    is(tuple::<UreyBradley, 3>(&[8.0, FRAC_PI_2 - 0.5, 2.0, 4.0], arms), 1.0 + 1.0);
    // bonds along −x, z, y: the planes' normals y and −x are at a right angle
    let quarter = [[0.0; 3], [-1.0, 0.0, 0.0], [-1.0, 0.0, 1.0], [-1.0, 1.0, 1.0]];
    is(tuple::<HarmonicImproper, 4>(&[2.0, 0.0], quarter), FRAC_PI_2.powi(2));
    is(tuple::<PeriodicImproper, 4>(&[3.0, 2.0, PI], quarter), 6.0);
    is(tuple::<PeriodicImproper, 4>(&[3.0, 2.0, 0.0], quarter), 0.0);
}

#[test]
fn fields() {
    use potentials::field::*;
    is(field::<PositionRestraint>(&[4.0], [1.0, -2.0, 2.0]), 18.0);
    is(field::<AnisotropicRestraint>(&[4.0, 2.0, 0.0], [1.0, -2.0, 2.0]), 2.0 + 4.0);
    is(field::<FlatBottom>(&[4.0, 1.0], [1.0, -2.0, 2.0]), 8.0);
    is(field::<FlatBottom>(&[4.0, 3.5], [1.0, -2.0, 2.0]), 0.0);
    is(field::<FlatBottom>(&[4.0, 3.5], [0.0; 3]), 0.0);
    // the plane 3x + 4y = 5 (position 1 along its normal), from below and above
    is(field::<HarmonicWall>(&[4.0, 1.0, 3.0, 4.0, 0.0], [1.0, -1.0, 7.0]), 2.0 * 1.2 * 1.2);
    is(field::<HarmonicWall>(&[4.0, 1.0, 3.0, 4.0, 0.0], [1.0, 1.0, 7.0]), 0.0);
    is(field::<UniformElectricField>(&[2.0, 3.0, 5.0], [1.0, -1.0, 0.5]), -(2.0 - 3.0 + 2.5));
}

#[test]
fn sutton_chen_keeps_copper_at_its_lattice_constant() {
    let p = prepare::<SuttonChen>(&[2.0, 0.5, 9.0, 6.0, 3.0]);
    is(SuttonChen::pair::<f64, f64>(Distance::new(1.0), &p), 2.0 / 512.0);
    is(SuttonChen::density::<f64, f64>(Distance::new(1.0), &p), 1.0 / 64.0);
    is(SuttonChen::embedding::<f64, f64>(4.0, &p), -12.0);

    // The paper's c = 39.432 of copper (ε = 0.012382 eV, a = 3.61 Å, n = 9, m = 6) makes the energy of the perfect
    // crystal stationary at the lattice constant a.
    let a = 3.61;
    let p = prepare::<SuttonChen>(&[0.012382, a, 9.0, 6.0, 39.432]);
    let energy = |scale: Dual<f64>| {
        let (mut pairs, mut rho) = (Dual::passive(0.0), Dual::passive(0.0));
        let n: i32 = 24;
        for x in -n..=n {
            for y in -n..=n {
                for z in -n..=n {
                    let r2 = x * x + y * y + z * z;
                    if (x + y + z) % 2 == 0 && r2 > 0 && r2 <= n * n {
                        let r = Distance::new(scale * (0.5 * a * f64::from(r2).sqrt()));
                        pairs = pairs + SuttonChen::pair::<Dual<f64>, f64>(r, &p) * 0.5;
                        rho = rho + SuttonChen::density::<Dual<f64>, f64>(r, &p);
                    }
                }
            }
        }
        // beyond the last shell: 4 atoms a cell of a³, ∫ 4/a³ (a/r)⁶ 4πr² dr = 16π/3 (a/R)³
        let far = scale.powi(-6) * (16.0 * PI / 3.0 / 12_f64.powi(3));
        pairs + SuttonChen::embedding::<Dual<f64>, f64>(rho + far, &p)
    };
    let e = energy(Dual::variable(1.0));
    assert!((e.tangent / e.value).abs() < 1e-4, "{e:?}");
    // and its cohesive energy is the 3.5 eV of copper
    assert!((e.value + 3.50).abs() < 0.02, "{e:?}");
}

#[test]
fn stillinger_and_webers_silicon() {
    // A and B were chosen so that the pair energy is −ε at its minimum 2^(1/6) σ
    let p = prepare::<StillingerWeber>(&[
        2.0,
        1.5,
        1.8,
        21.0,
        1.2,
        -1.0 / 3.0,
        7.049_556_277,
        0.602_224_558_4,
        4.0,
        0.0,
    ]);
    let r = Distance::new(Dual::variable(1.5 * 2_f64.powf(1.0 / 6.0)));
    let e = StillingerWeber::pair::<Dual<f64>, f64>(r, &p);
    assert!((e.value + 2.0).abs() < 1e-8 && e.tangent.abs() < 1e-7, "{e:?}");
    is(StillingerWeber::reach(&p), 2.7);
    // r = σ: the exponent is γ/(1 − 1.8)
    is(StillingerWeber::feature::<f64, f64>(Distance::new(1.5), &p), (-1.5_f64).exp());
    is(StillingerWeber::triplet::<f64, f64>(1.0 / 6.0, 0.5, 0.25, &p), 42.0 * 0.125 * 0.25);
}

#[test]
fn tersoff_alone_with_one_neighbor() {
    let p = prepare::<Tersoff>(&[
        3.0, 1.0, 0.0, 4.8, 2.0, 0.0, 22.956, 0.33675, 1.5, 90.0, 3.0, 0.2, 3.0, 3000.0,
    ]);
    let site = |vectors: &[[f64; 3]]| {
        let neighbors: Vec<_> = vectors
            .iter()
            .map(|&v| Vec3::<f64>::constant(v))
            .map(|vector| SiteNeighbor { vector, distance: vector.norm(), kind: 0 })
            .collect();
        Tersoff::energy::<f64, f64>(&neighbors, |_, _| &p)
    };
    // without others the bond order is 1
    let e = |r: f64| 3000.0 * (-3.0 * r).exp() - 90.0 * (-1.5 * r).exp();
    is(site(&[[2.0, 0.0, 0.0]]), 0.5 * e(2.0));
    // halfway where bonds end, and at the end
    is(site(&[[0.0, 3.0, 0.0]]), 0.25 * e(3.0));
    is(site(&[[0.0, 0.0, 3.2]]), 0.0);
    is(site(&[]), 0.0);
    // two at a right angle (cos θ = cos θ₀): g = 1, ζ = 1, b = (1 + βⁿ)^(−1/2n)
    let b = (1.0 + 0.33675_f64.powf(22.956)).powf(-0.5 / 22.956);
    is(site(&[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0]]), 3000.0 * (-6_f64).exp() - b * 90.0 * (-3_f64).exp());
}

#[test]
fn radius_of_gyration() {
    // masses 1 and 3 at a distance of 4: Rg² = 3/16 · 16
    let x = [[1.0, 0.0, 0.0], [1.0, 4.0, 0.0]].map(Vec3::<f64>::constant);
    let p = prepare::<RadiusOfGyration>(&[2.0, 1.0]);
    is(RadiusOfGyration::energy::<f64, f64>(&x, &[1.0, 3.0], &p), (3_f64.sqrt() - 1.0).powi(2));
    // one atom has no size, and no force
    let one = [Vec3::<Dual<f64>>::new(Dual::variable(2.0), Dual::passive(0.0), Dual::passive(0.0))];
    let e = RadiusOfGyration::energy::<Dual<f64>, f64>(&one, &[5.0], &p);
    assert_eq!((e.value, e.tangent), (1.0, 0.0));
}
