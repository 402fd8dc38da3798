//! Random numbers that depend on what they are for, never on who asks first.
//!
//! The generator is Philox4x32-10 (J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random
//! numbers: as easy as 1, 2, 3", SC'11, 2011, doi:10.1145/2063384.2063405): a bijection of 128-bit counters
//! chosen by a key of 64 bits. The key is the seed; the counter says what the number is for: the
//! [`Purpose`], the atom, the step and the number of the draw. So the noise on an atom at a step is the same
//! whichever thread computes it, in whatever order, and after a restart there is nothing to restore.
//!
//! | counter word | bits | holds |
//! |---|---|---|
//! | 0 | 32 | atom, low bits |
//! | 1, 2 | 64 | step |
//! | 3 | 8 + 1 + 7 + 16 | purpose; 1 for a [`Stream`]; draw; atom, high bits |
//!
//! Normal deviates use only +, −, ×, ÷ and √ (and integers), so they have the same bits on every machine.

use rand::TryRng;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::f64::consts::{FRAC_PI_2, SQRT_2};

/// What random numbers are for. Numbers for different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Initial velocities.
    Velocities = 1,
    /// The noise of a Langevin integrator.
    Langevin = 2,
    /// The noise of a stochastic thermostat.
    Thermostat = 3,
    /// The noise or the trial moves of a barostat.
    Barostat = 4,
    /// Initial positions.
    Positions = 5,
    /// Vectors that iterations start from.
    Vectors = 6,
    /// The weights of a new network.
    Weights = 7,
    /// The order of minibatches, and what is held out of a fit.
    Batches = 8,
    /// Anything in tests.
    Test = 255,
}

/// Philox4x32-10: the 128 random bits that belong to a counter under a key.
#[inline(always)]
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
    const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    let ([mut a, mut b, mut c, mut d], [mut k0, mut k1]) = (counter, key);
    for _ in 0..10 {
        let (p, q) = (MULTIPLIERS[0] * u64::from(a), MULTIPLIERS[1] * u64::from(c));
        (a, b) = ((q >> 32) as u32 ^ b ^ k0, q as u32);
        (c, d) = ((p >> 32) as u32 ^ d ^ k1, p as u32);
        (k0, k1) = (k0.wrapping_add(WEYL[0]), k1.wrapping_add(WEYL[1]));
    }
    [a, b, c, d]
}

/// A uniform deviate in the open interval (0, 1) from 64 random bits: an odd multiple of 2⁻⁵³.
#[inline(always)]
pub fn uniform(bits: u64) -> f64 {
    // The bits as the mantissa of a number from 1 to 2.
    (f64::from_bits(bits >> 12 | 1023 << 52) - 1.0) + 0.5 * f64::EPSILON
}

/// Two independent standard normal deviates from 2 × 64 random bits (G. E. P. Box and M. E. Muller, Ann.
/// Math. Stat. 29, 610, 1958): √(−2 ln u) (cos φ, sin φ), where the bits of u and φ are the arguments.
/// Finite for all bits: at most 8.6 in magnitude.
#[inline(always)]
pub fn normal_pair(u: u64, phi: u64) -> [f64; 2] {
    let radius = (-2.0 * ln(uniform(u))).sqrt();
    direction(phi).map(|x| radius * x)
}

// What follows has no branches, so that loops over it become vector instructions.

/// ln x for a normal positive x: ln(2ᵉ m) = e ln 2 + 2 artanh((m − 1)/(m + 1)) with m in [√½, √2].
#[inline(always)]
fn ln(x: f64) -> f64 {
    // The leading bits of ln 2 (any of our e times it is exact), and the rest.
    const LEADING: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
    const REST: f64 = 1.908_214_929_270_587_7e-10;
    let bits = x.to_bits();
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let high = mantissa > SQRT_2;
    let m = if high { 0.5 * mantissa } else { mantissa };
    let e = f64::from((bits >> 52) as i32 - 1023) + if high { 1.0 } else { 0.0 };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    // artanh s = s + s³/3 + s⁵/5 + …; |s| < 0.172, so the first term left out is below 2⁻⁵⁴ of the sum.
    const TERMS: [f64; 10] = [
        1.0 / 21.0,
        1.0 / 19.0,
        1.0 / 17.0,
        1.0 / 15.0,
        1.0 / 13.0,
        1.0 / 11.0,
        1.0 / 9.0,
        1.0 / 7.0,
        1.0 / 5.0,
        1.0 / 3.0,
    ];
    let tail = horner(1.0 / 23.0, TERMS, z);
    e * LEADING + (2.0 * s + (2.0 * s * (z * tail) + e * REST))
}

/// A uniformly distributed point on the unit circle from 64 random bits: 52 give an angle x in ±π/4, and
/// two others put the point (cos x, sin x) into one of four such sectors.
#[inline(always)]
fn direction(bits: u64) -> [f64; 2] {
    let x = (uniform(bits << 2) - 0.5) * FRAC_PI_2;
    let z = x * x;
    // Taylor series; |x| ≤ π/4, so the first terms left out are below 2⁻⁵⁴ of the sums.
    const COS: [f64; 8] = [
        -1.0 / 87_178_291_200.0,
        1.0 / 479_001_600.0,
        -1.0 / 3_628_800.0,
        1.0 / 40_320.0,
        -1.0 / 720.0,
        1.0 / 24.0,
        -1.0 / 2.0,
        1.0,
    ];
    const SIN: [f64; 8] = [
        -1.0 / 1_307_674_368_000.0,
        1.0 / 6_227_020_800.0,
        -1.0 / 39_916_800.0,
        1.0 / 362_880.0,
        -1.0 / 5_040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ];
    let cos = horner(1.0 / 20_922_789_888_000.0, COS, z);
    let sin = horner(1.0 / 355_687_428_096_000.0, SIN, z) * x;
    let cos = f64::from_bits(cos.to_bits() ^ (bits & 1 << 63));
    match bits & 1 << 62 == 0 {
        true => [cos, sin],
        false => [sin, cos],
    }
}

/// The polynomial whose highest coefficient is `first`, followed by the others.
#[inline(always)]
fn horner<const N: usize>(first: f64, others: [f64; N], x: f64) -> f64 {
    let mut sum = first;
    for c in others {
        sum = sum * x + c;
    }
    sum
}

/// The random numbers of one seed for one [`Purpose`], addressed by atom and step.
///
/// ```
/// use md::random::{Noise, Purpose};
/// let noise = Noise::new(2024, Purpose::Langevin);
/// assert_eq!(noise.normals(7, 3), noise.normals(7, 3));
/// assert_ne!(noise.normals(7, 3), noise.normals(8, 3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noise {
    key: [u32; 2],
    purpose: Purpose,
}

impl Noise {
    /// The numbers of this seed for this purpose.
    pub fn new(seed: u64, purpose: Purpose) -> Noise {
        Noise { key: [seed as u32, (seed >> 32) as u32], purpose }
    }

    /// 2 × 64 random bits of an atom (below 2⁴⁸) at a step; draws from 128 on are those from 0 on again.
    #[inline(always)]
    pub fn bits(&self, step: u64, atom: usize, draw: u8) -> [u64; 2] {
        let atom = atom as u64;
        let word = (self.purpose as u32) << 24 | u32::from(draw & 127) << 16 | (atom >> 32) as u32 & 0xFFFF;
        pair(philox4x32([atom as u32, step as u32, (step >> 32) as u32, word], self.key))
    }

    /// Four independent standard normal deviates of an atom at a step (draws 0 and 1).
    #[inline]
    pub fn normals(&self, step: u64, atom: usize) -> [f64; 4] {
        let ([u, w], [v, x]) = (self.bits(step, atom, 0), self.bits(step, atom, 1));
        let ([a, b], [c, d]) = (normal_pair(u, w), normal_pair(v, x));
        [a, b, c, d]
    }

    /// [`Noise::normals`] of `N` atoms in a row from `first` on, the same bits several times as fast.
    #[inline]
    pub fn normals_of<const N: usize>(&self, step: u64, first: usize) -> [[f64; 4]; N] {
        let mut out = [[0.0; 4]; N];
        for draw in 0..2 {
            // One array for each quantity, which suits vector instructions.
            let (mut u, mut phi, mut x, mut y) = ([0; N], [0; N], [0.0; N], [0.0; N]);
            for (i, (u, phi)) in u.iter_mut().zip(&mut phi).enumerate() {
                [*u, *phi] = self.bits(step, first.wrapping_add(i), draw);
            }
            for ((x, y), (u, phi)) in x.iter_mut().zip(&mut y).zip(u.iter().zip(&phi)) {
                [*x, *y] = normal_pair(*u, *phi);
            }
            let at = 2 * usize::from(draw);
            for (out, (x, y)) in out.iter_mut().zip(x.iter().zip(&y)) {
                (out[at], out[at + 1]) = (*x, *y);
            }
        }
        out
    }

    /// Two independent uniform deviates in (0, 1) of an atom at a step.
    #[inline]
    pub fn uniforms(&self, step: u64, atom: usize, draw: u8) -> [f64; 2] {
        self.bits(step, atom, draw).map(uniform)
    }
}

#[inline(always)]
fn pair([a, b, c, d]: [u32; 4]) -> [u64; 2] {
    [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32]
}

/// A sequence of random numbers for where the order is given by the task itself, as a [`rand::Rng`]. It
/// shares no numbers with [`Noise`] of the same seed and purpose, and repeats after 2⁶⁴ blocks of 128 bits.
///
/// ```
/// use md::random::{Purpose, Stream};
/// use rand::RngExt;
/// let mut stream = Stream::new(2024, Purpose::Positions, 0);
/// let x: f64 = stream.random_range(0.0..2.0);
/// assert!((0.0..2.0).contains(&x));
/// ```
#[derive(Debug)]
pub struct Stream {
    key: [u32; 2],
    word: u32,
    number: u32,
    block: u64,
    have: [u32; 4],
    used: usize,
}

impl Stream {
    /// Stream `number` of a seed and purpose, from its beginning.
    pub fn new(seed: u64, purpose: Purpose, number: u32) -> Stream {
        Stream {
            key: [seed as u32, (seed >> 32) as u32],
            word: (purpose as u32) << 24 | 1 << 23,
            number,
            block: 0,
            have: [0; 4],
            used: 4,
        }
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        if self.used >= 4 {
            let counter = [self.number, self.block as u32, (self.block >> 32) as u32, self.word];
            self.have = philox4x32(counter, self.key);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        Ok(self.have[self.used - 1])
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let low = u64::from(self.try_next_u32()?);
        Ok(low | u64::from(self.try_next_u32()?) << 32)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        for chunk in to.chunks_mut(4) {
            chunk.copy_from_slice(&self.try_next_u32()?.to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::Rng;
    use rand_distr::Distribution;

    /// Random123 1.14, tests/kat_vectors: counter, key, result of `philox4x32 10`.
    #[test]
    fn philox_known_answers() {
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        for (counter, key, expected) in [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (pi, [0xa409_3822, 0x299f_31d0], [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]),
        ] {
            assert_eq!(philox4x32(counter, key), expected);
        }
    }

    #[test]
    fn uniforms_are_inside() {
        assert_eq!(uniform(0), 0.5f64.powi(53));
        assert_eq!(uniform(u64::MAX), 1.0 - 0.5f64.powi(53));
    }

    #[test]
    fn normals_are_finite_at_the_edges() {
        let edges =
            [0, 1, 4095, 4096, 1 << 61, 1 << 62, 1 << 63, 3 << 62, u64::MAX >> 1, u64::MAX - 1, u64::MAX];
        for u in edges {
            for w in edges {
                let [a, b] = normal_pair(u, w);
                assert!(a.is_finite() && b.is_finite() && a.hypot(b) < 8.58 && a.hypot(b) > 0.0);
            }
        }
    }

    proptest! {
        #[test]
        fn logarithm_and_direction_are_those_of_the_library(u: u64, w: u64) {
            for x in [uniform(u), uniform(u >> (w % 64)), uniform(!(u >> (w % 64)))] {
                prop_assert!((ln(x) - x.ln()).abs() <= 4e-16 * x.ln().abs(), "{x} {} {}", ln(x), x.ln());
            }
            let x = (uniform(w << 2) - 0.5) * FRAC_PI_2;
            let [c, s] = direction(w & (u64::MAX >> 2));
            prop_assert!((c - x.cos()).abs() < 3e-16 && (s - x.sin()).abs() < 2e-16);
            prop_assert_eq!(direction(w & (u64::MAX >> 2) | 1 << 63), [-c, s]);
            prop_assert_eq!(direction(w & (u64::MAX >> 2) | 1 << 62), [s, c]);
            prop_assert_eq!(direction(w | 3 << 62), [s, -c]);
        }

        #[test]
        fn several_at_once_are_one_by_one(seed: u64, step: u64, first in 0..1usize << 40) {
            let noise = Noise::new(seed, Purpose::Test);
            let all = noise.normals_of::<7>(step, first);
            for (i, normals) in all.into_iter().enumerate() {
                prop_assert_eq!(normals, noise.normals(step, first + i));
            }
        }
    }

    /// Moments, tails and correlations of 4 × 250,000 normals, each within five standard errors of what a
    /// standard normal distribution has.
    #[test]
    fn normals_are_normal() {
        let noise = Noise::new(1, Purpose::Test);
        let n = 250_000;
        let (mut sums, mut cross, mut beyond) = ([0.0; 4], [0.0; 6], [0.0; 3]);
        for i in 0..n {
            let x = noise.normals(i as u64 / 500, i % 500);
            for x in x {
                for (k, sum) in sums.iter_mut().enumerate() {
                    *sum += x.powi(k as i32 + 1);
                }
                for (k, count) in beyond.iter_mut().enumerate() {
                    *count += f64::from(u8::from(x > 1.0 + k as f64));
                }
            }
            let pairs = [x[0] * x[1], x[0] * x[2], x[0] * x[3], x[1] * x[2], x[1] * x[3], x[2] * x[3]];
            for (sum, product) in cross.iter_mut().zip(pairs) {
                *sum += product;
            }
        }
        let all = 4.0 * n as f64;
        // Mean and variance of x, x², x³, x⁴.
        for (k, (mean, variance)) in
            [(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0f64)].into_iter().enumerate()
        {
            let off = (sums[k] / all - mean) / (variance / all).sqrt();
            assert!(off.abs() < 5.0, "moment {} is {off} standard errors off", k + 1);
        }
        for sum in cross {
            assert!((sum / (n as f64).sqrt()).abs() < 5.0);
        }
        // Q(1), Q(2), Q(3), from Abramowitz and Stegun, table 26.1.
        for (count, q) in beyond.into_iter().zip([0.158_655_253_9, 0.022_750_131_9, 0.001_349_898_0f64]) {
            assert!(((count - all * q) / (all * q * (1.0 - q)).sqrt()).abs() < 5.0, "{count} {}", all * q);
        }
    }

    #[test]
    fn everything_that_names_a_number_changes_it() {
        let base = Noise::new(5, Purpose::Test).bits(6, 7, 0);
        let others = [
            Noise::new(5 | 1 << 40, Purpose::Test).bits(6, 7, 0),
            Noise::new(5, Purpose::Langevin).bits(6, 7, 0),
            Noise::new(5, Purpose::Test).bits(6 | 1 << 40, 7, 0),
            Noise::new(5, Purpose::Test).bits(6, 7 | 1 << 40, 0),
            Noise::new(5, Purpose::Test).bits(6, 7, 1),
            Noise::new(5, Purpose::Test).bits(7, 6, 0),
        ];
        assert!(others.iter().all(|o| *o != base));
    }

    #[test]
    fn streams_are_generators_for_rand() {
        let (mut a, mut b) = (Stream::new(9, Purpose::Test, 1), Stream::new(9, Purpose::Test, 1));
        let words: Vec<u32> = (0..10).map(|_| a.next_u32()).collect();
        let mut bytes = [0u8; 38];
        b.fill_bytes(&mut bytes);
        for (k, byte) in bytes.iter().enumerate() {
            assert_eq!(*byte, words[k / 4].to_le_bytes()[k % 4]);
        }
        assert_ne!(Stream::new(9, Purpose::Test, 0).next_u64(), Stream::new(9, Purpose::Test, 1).next_u64());
        let die = rand_distr::Uniform::new(0, 6).unwrap();
        let mut count = [0.0f64; 6];
        for _ in 0..60_000 {
            count[die.sample(&mut a) as usize] += 1.0;
        }
        // χ² with 5 degrees of freedom exceeds 25.7 once in 10⁴.
        let chi2: f64 = count.iter().map(|n| (n - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 25.7, "{chi2}");
    }
}
