//! Elementary functions of lanes in registers: one text for all widths and both precisions.
//!
//! The methods are the usual ones. Arguments are reduced by subtracting a multiple of a constant that is given in
//! parts (Cody and Waite, Software Manual for the Elementary Functions, 1980), the logarithm is that of
//! (1 + s)/(1 − s) with its largest terms added last (as in Sun's fdlibm), what must be more exact than a number is a
//! number and its error (Dekker, Numer. Math. 18, 224, 1971), the first guess of 1/√x comes from the bits of x, and
//! erfc is that of [`potentials::special`] with the polynomial fitted from ½ on.
//!
//! All coefficients are minimax fits of our own, made with mpmath 1.3 at 60 digits by Remez' exchange in the weight
//! that the term has in the result; each is for what is left when the exactly known leading terms are taken away. The
//! errors that all this leads to are asserted in `accuracy.rs`.
//!
//! Nothing here depends on a library or on an instruction that rounds differently elsewhere: whatever has a fused
//! multiply-add gives the same bits. The one exception is said at [`sin`].

use super::Element;
use super::packed::{Packed, Register};
use potentials::{Mask, Scalar};

/// What the functions below need to know of a format of numbers.
pub(crate) trait Format: Element {
    /// How many bits it has.
    const BITS: u32;
    /// How many of them are the significand, without the hidden one.
    const SIGNIFICAND: u32;
    /// The bit of the sign.
    const SIGN: u64 = 1 << (Self::BITS - 1);
    /// What is added to exponents.
    const BIAS: f64;
    /// The bits of the smallest normal number.
    const SMALLEST: u64 = 1 << Self::SIGNIFICAND;
    /// The bits of √½.
    const ROOT_HALF: u64;
    /// Adding this number and taking it away rounds to integers; in between, the lowest bits are the integer.
    const SHIFTER: f64 = 1.5 * (1u64 << Self::SIGNIFICAND) as f64;
    /// Multiplying by this number is the first step to cut the digits of another in two halves.
    const SPLITTER: f64 = (1u64 << (Self::SIGNIFICAND / 2 + 1)) as f64 + 1.0;
    /// What the bits of x, moved down by one, are taken from for a guess of 1/√x within 3.5 %.
    const ROOT_GUESS: u64;
    /// ln 2: its product with an exponent is exact for the first part.
    const LN2: [f64; 2];
    /// Beyond these the exponential function is zero or infinite.
    const EXP_RANGE: [f64; 2];
    /// π/2 in full numbers.
    const HALF_PI: &[f64];
    /// π/2 in shorter numbers: their products with integers are exact (but for the last) within the range of angles.
    const HALF_PI_SHORT: &[f64];
    /// See there.
    const ANGLE_RANGE: f64;
    /// π, rounded, and the rest.
    const PI: [f64; 2];
    /// 2/3, rounded, and the rest.
    const TWO_THIRDS: [f64; 2];
    /// Beyond this the hyperbolic tangent is one.
    const TANH_RANGE: f64;
    /// Beyond this erfc is zero.
    const ERFC_RANGE: f64;
    /// a, b and c of u = a − b/(x + c), which takes x from ½ to the end of erfc to −1…1.
    const ERFC_MAP: [f64; 3];

    /// The number with these bits, of which single precision takes the lower half.
    fn from_bits(bits: u64) -> Self;
    /// (eʳ − 1 − r)/r²
    fn exp_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (2 artanh(s)/s − 2)/z of z = s²
    fn ln_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (2 artanh(s)/s − 2 − ⅔ z)/z²
    fn ln_rest_exact<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (sin(r)/r − 1)/z of z = r²
    fn sin_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (cos(r) − 1 + z/2)/z²
    fn cos_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (arcsin(s)/s − 1)/z of z = s² up to ¼
    fn asin_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (arctan(q)/q − 1)/z of z − ½, z = q² up to 1 (the powers of z itself would cancel)
    fn atan_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (erf(x)/x − 2/√π)/z of z = x² up to ¼
    fn erf_rest<R: Register>(x: Packed<R>) -> Packed<R>;
    /// (1 + 2x) e^(x²) erfc(x) of u, see [`ERFC_MAP`](Self::ERFC_MAP)
    fn erfc_rest<R: Register>(x: Packed<R>) -> Packed<R>;
}

// (the last digits of coefficients are as they were computed)
#[allow(clippy::excessive_precision)]
impl Format for f64 {
    const BITS: u32 = 64;
    const SIGNIFICAND: u32 = 52;
    const BIAS: f64 = 1023.0;
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ROOT_GUESS: u64 = 0x5fe6_eb50_c7b5_37a9;
    const LN2: [f64; 2] = [0.6931471803691238, 1.9082149292705877e-10];
    const EXP_RANGE: [f64; 2] = [-746.0, 710.0];
    const HALF_PI: &[f64] = &[std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];
    const HALF_PI_SHORT: &[f64] =
        &[1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];
    const ANGLE_RANGE: f64 = (1 << 20) as f64;
    const PI: [f64; 2] = [std::f64::consts::PI, 1.2246467991473532e-16];
    const TWO_THIRDS: [f64; 2] = [2.0 / 3.0, 3.700743415417188e-17];
    const TANH_RANGE: f64 = 20.0;
    const ERFC_RANGE: f64 = 28.0;
    const ERFC_MAP: [f64; 3] = [1.2909007603608713, 9.163373951367449, 3.5];
    #[inline(always)]
    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn exp_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.5000000000000012,
                0.166666666666667,
                0.04166666666651542,
                0.008333333333307219,
                0.0013888888947016004,
                0.0001984126991735746,
                2.4801489942087042e-05,
                2.7557216320357395e-06,
                2.7631280385852207e-07,
                2.5117856104683727e-08,
            ],
        )
    }
    #[inline(always)]
    fn ln_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.6666666666666734,
                0.3999999999941335,
                0.2857142874283616,
                0.2222219851460754,
                0.18183567924487273,
                0.15313945965873837,
                0.1479710972748302,
            ],
        )
    }
    #[inline(always)]
    fn ln_rest_exact<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.3999999999999998,
                0.2857142857144522,
                0.22222222217510834,
                0.1818181887346917,
                0.15384556655184606,
                0.13336325743332775,
                0.11674649125386517,
                0.11990426980706885,
            ],
        )
    }
    #[inline(always)]
    fn sin_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                -0.16666666666666632,
                0.0083333333333224,
                -0.00019841269829794938,
                2.755731368720786e-06,
                -2.505075734339606e-08,
                1.5896749085627468e-10,
            ],
        )
    }
    #[inline(always)]
    fn cos_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.0416666666666666,
                -0.0013888888888874103,
                2.4801587289468384e-05,
                -2.7557314348139656e-07,
                2.0875722677352718e-09,
                -1.1359615698280146e-11,
            ],
        )
    }
    #[inline(always)]
    fn asin_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.1666666666666676,
                0.07499999999970779,
                0.04464285717471743,
                0.030381942700209386,
                0.02237221524760799,
                0.01735160676985203,
                0.013980888260287358,
                0.011398329738204076,
                0.010783633127892208,
                0.0036933232210797314,
                0.02173984391567825,
                -0.02104547399381758,
                0.032657894363725924,
            ],
        )
    }
    #[inline(always)]
    fn atan_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                -0.2591604972657936,
                0.11081482513071447,
                -0.05481484060456632,
                0.02913586264512707,
                -0.0161729749018062,
                0.009243096232498084,
                -0.005394792657152381,
                0.0031991748770911735,
                -0.0019209407381259127,
                0.0011650712737539392,
                -0.0007125068057168437,
                0.00043869588324892833,
                -0.0002715620085726004,
                0.00016948204156732018,
                -0.00010714215144524138,
                6.558062383247436e-05,
                -3.681483900690455e-05,
                2.6969026851427263e-05,
                -2.6655633208343464e-05,
                1.3499343220640454e-05,
            ],
        )
    }
    #[inline(always)]
    fn erf_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                -0.37612638903183754,
                0.11283791670954918,
                -0.02686617064501584,
                0.005223977622302722,
                -0.0008548326540313054,
                0.00012055288046759013,
                -1.4923071550292024e-05,
                1.637261008316637e-06,
                -1.4632584194251809e-07,
            ],
        )
    }
    #[inline(always)]
    fn erfc_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                1.2404059617518053,
                -0.10713610417411062,
                -0.0038685147601984003,
                0.04070124885028175,
                -0.037162767592185036,
                0.02185139847675006,
                -0.009338581236996348,
                0.002828180083863154,
                -0.0004926253895353907,
                -1.9960538217025217e-05,
                3.690469394192978e-05,
                -6.631000745372165e-06,
                -1.515418764010116e-06,
                7.432265616474842e-07,
                3.5376687817506175e-08,
                -6.704518626790718e-08,
                1.2991863614616005e-09,
                6.109798635299133e-09,
                -2.527754794821819e-10,
                -5.52041318178573e-10,
                1.617076213189792e-11,
                3.5921672338739714e-11,
            ],
        )
    }
}

#[allow(clippy::excessive_precision)]
impl Format for f32 {
    const BITS: u32 = 32;
    const SIGNIFICAND: u32 = 23;
    const BIAS: f64 = 127.0;
    const ROOT_HALF: u64 = 0x3f35_04f3;
    const ROOT_GUESS: u64 = 0x5f37_5a86;
    const LN2: [f64; 2] = [0.693115234375, 3.194618329871446e-05];
    const EXP_RANGE: [f64; 2] = [-104.0, 89.0];
    const HALF_PI: &[f64] = &[1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15];
    const HALF_PI_SHORT: &[f64] = &[
        1.5703125,
        0.0004837512969970703,
        7.549533620476723e-08,
        2.5632829192545614e-12,
        6.123234262925839e-17,
    ];
    const ANGLE_RANGE: f64 = (1 << 13) as f64;
    const PI: [f64; 2] = [3.141592502593994, 1.5099580252808664e-07];
    const TWO_THIRDS: [f64; 2] = [0.6666666269302368, 3.973643103449831e-08];
    const TANH_RANGE: f64 = 10.0;
    const ERFC_RANGE: f64 = 10.5;
    const ERFC_MAP: [f64; 3] = [1.5999740002599974, 7.799662003379966, 2.5];
    #[inline(always)]
    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn exp_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.5000000095013233,
                0.16666518915022424,
                0.04166620619780195,
                0.008368882408795275,
                0.0013950470137791722,
            ],
        )
    }
    #[inline(always)]
    fn ln_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(x, [0.6666677660207978, 0.3997750676813633, 0.2987281962959164])
    }
    #[inline(always)]
    fn ln_rest_exact<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(x, [0.40000152642758036, 0.28547083743502966, 0.2341981935588362])
    }
    #[inline(always)]
    fn sin_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(x, [-0.1666665492672117, 0.008332177021300534, -0.00019517140866418247])
    }
    #[inline(always)]
    fn cos_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(x, [0.04166664683724205, -0.0013887366018661188, 2.443827306632729e-05])
    }
    #[inline(always)]
    fn asin_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                0.16666753605717724,
                0.07495252034947221,
                0.04547600891836627,
                0.024152337394274647,
                0.04221130680445745,
            ],
        )
    }
    #[inline(always)]
    fn atan_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                -0.25916049297230953,
                0.11081478345126149,
                -0.05481559666099223,
                0.029139550170065805,
                -0.016154227890748298,
                0.009165173256381599,
                -0.0055205281353319586,
                0.0037559317760283146,
                -0.0018277508948566427,
            ],
        )
    }
    #[inline(always)]
    fn erf_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(x, [-0.3761261778581459, 0.11282963660918931, -0.026764976684627146, 0.004732194503656144])
    }
    #[inline(always)]
    fn erfc_rest<R: Register>(x: Packed<R>) -> Packed<R> {
        polynomial(
            x,
            [
                1.2679109780580797,
                -0.07497406930524853,
                -0.045851900273592434,
                0.044368225488986536,
                -0.018097577211070855,
                0.003523508466368006,
                0.00012124593116673539,
                -0.0001965030932279154,
                8.19474445140539e-06,
                9.693148096581466e-06,
            ],
        )
    }
}

/// Σₖ cₖ xᵏ, even and odd powers apart, so that half as many operations wait for each other.
#[inline(always)]
fn polynomial<R: Register, const N: usize>(x: Packed<R>, c: [f64; N]) -> Packed<R> {
    if N < 6 {
        return x.poly(c);
    }
    let square = x * x;
    let (mut a, mut b) = (Packed::constant(c[N - 1]), Packed::constant(c[N - 2]));
    let mut k = N - 2;
    while k > 0 {
        // a follows in b's place
        (a, b) = (b, a.fma(square, Packed::constant(c[k - 1])));
        k -= 1;
    }
    a.fma(x, b)
}

// Bits as bits and as integers.
impl<R: Register> Packed<R> {
    #[inline(always)]
    fn and(self, bits: u64) -> Self {
        Packed(self.0.and(Self::pattern(bits).0))
    }
    #[inline(always)]
    fn or(self, bits: u64) -> Self {
        Packed(self.0.or(Self::pattern(bits).0))
    }
    #[inline(always)]
    fn xor(self, o: Self) -> Self {
        Packed(self.0.xor(o.0))
    }
    #[inline(always)]
    fn plus(self, bits: u64) -> Self {
        Packed(self.0.plus(Self::pattern(bits).0))
    }
    #[inline(always)]
    fn up(self, by: u32) -> Self {
        Packed(self.0.up(by))
    }
    #[inline(always)]
    fn down(self, by: u32) -> Self {
        Packed(self.0.down(by))
    }
    /// The bit of the sign alone.
    #[inline(always)]
    fn sign(self) -> Self {
        self.and(R::Element::SIGN)
    }
    /// Where the bit of the sign is set.
    #[inline(always)]
    fn signed(self) -> R::Mask {
        Packed(self.sign().0.or(Self::constant(1.0).0)).lt(Self::constant(0.0))
    }
    /// The number, but no larger than x; NaN stays NaN.
    #[inline(always)]
    fn at_most(self, x: f64) -> Self {
        Packed(Self::constant(x).0.smaller(self.0))
    }
    /// The number, but no smaller than x; NaN stays NaN.
    #[inline(always)]
    fn at_least(self, x: f64) -> Self {
        Packed(Self::constant(x).0.larger(self.0))
    }
    #[inline(always)]
    fn scaled(self, n: Self) -> Self {
        Packed(self.0.scaled(n.0))
    }
}

/// A number and what rounding has cost it.
#[derive(Clone, Copy)]
struct Exact<R> {
    high: Packed<R>,
    low: Packed<R>,
}

/// a × b
#[inline(always)]
fn product<R: Register>(a: Packed<R>, b: Packed<R>) -> Exact<R> {
    let high = a * b;
    if R::FUSED {
        return Exact { high, low: a.fma(b, -high) };
    }
    let split = |x: Packed<R>| {
        let c = x * R::Element::SPLITTER;
        let upper = c - (c - x);
        (upper, x - upper)
    };
    let ((a, a2), (b, b2)) = (split(a), split(b));
    Exact { high, low: ((a * b - high) + a * b2 + a2 * b) + a2 * b2 }
}

/// a + b for |a| ≥ |b| or a = 0
#[inline(always)]
fn sum<R: Register>(a: Packed<R>, b: Packed<R>) -> Exact<R> {
    let high = a + b;
    Exact { high, low: b - (high - a) }
}

/// 2ⁿ for integers n within the range of exponents.
#[inline(always)]
fn power_of_two<R: Register>(n: Packed<R>) -> Packed<R> {
    // (the bits of n stand at the bottom, and what is above them is shifted out)
    (n + (R::Element::SHIFTER + R::Element::BIAS)).up(R::Element::SIGNIFICAND)
}

/// x × 2ⁿ in two steps, the first of which is exact.
#[inline(always)]
pub(super) fn scaled<R: Register>(x: R, n: R) -> R {
    let (x, n) = (Packed(x), Packed(n));
    let half = (n * 0.5 + R::Element::SHIFTER) - R::Element::SHIFTER;
    (x * power_of_two(half) * power_of_two(n - half)).0
}

/// 1/√x
#[inline(always)]
pub(super) fn rsqrt<R: Register>(x: Packed<R>) -> Packed<R> {
    if !R::GUESSED_ROOT {
        return x.sqrt().recip();
    }
    let guess = Packed(Packed::<R>::pattern(R::Element::ROOT_GUESS).0.minus(x.down(1).0));
    let error =
        |y: Packed<R>| if R::FUSED { (x * y).fma(-y, Packed::constant(1.0)) } else { 1.0 - x * y * y };
    let e = error(guess);
    let mut y = (guess * e).fma(e.poly([0.5, 0.375, 0.3125]), guess);
    let rest = error(y);
    y = if R::Element::BITS == 64 {
        (y * rest).fma(rest.poly([0.5, 0.375, 0.3125]), y)
    } else {
        (y * rest).fma(Packed::constant(0.5), y)
    };
    // the guess is off where the bits are not those of a normal positive number
    let usual = e.abs().lt(Packed::constant(0.1));
    if usual.decided() == Some(true) {
        return y;
    }
    Packed::select(usual, y, x.sqrt().recip())
}

/// eˣ
#[inline(always)]
pub(super) fn exp<R: Register>(x: Packed<R>) -> Packed<R> {
    exp_of(Exact { high: x, low: Packed::constant(0.0) })
}

/// eˣ of a number and its error.
#[inline(always)]
fn exp_of<R: Register>(x: Exact<R>) -> Packed<R> {
    let (rest, n) = exp_parts(x);
    (rest + 1.0).scaled(n)
}

/// s and n of eˣ = (1 + s) 2ⁿ.
#[inline(always)]
fn exp_parts<R: Register>(x: Exact<R>) -> (Packed<R>, Packed<R>) {
    let [least, most] = R::Element::EXP_RANGE;
    let high = x.high.at_most(most).at_least(least);
    let shifter = Packed::constant(R::Element::SHIFTER);
    let n = high.fma(Packed::constant(std::f64::consts::LOG2_E), shifter) - shifter;
    let [a, b] = R::Element::LN2;
    let r = n.fma(Packed::constant(-a), high);
    let r = r + n.fma(Packed::constant(-b), x.low);
    ((r * r).fma(R::Element::exp_rest(r), r), n)
}

/// A number as 2ᵏ m with m from √½ to √2.
struct Parts<R: Register> {
    k: Packed<R>,
    m: Packed<R>,
    /// The lanes that are normal positive numbers, if not all are.
    unusual: Option<R::Mask>,
}

#[inline(always)]
fn parts<R: Register>(x: Packed<R>) -> Parts<R> {
    let smallest = Packed::<R>::pattern(R::Element::SMALLEST);
    let usual = smallest.le(x) & x.lt(Packed::constant(f64::INFINITY));
    let all = usual.decided() == Some(true);
    let digits = R::Element::SIGNIFICAND;
    // Subnormal numbers become normal. (Without a branch: a logarithm that two formulas share is then seen to be the same.)
    let (up, bias) = (digits + 2, -((1u64 << digits) as f64 + R::Element::BIAS));
    let small = x.lt(smallest);
    let y = Packed::select(small, x * (1u64 << up) as f64, x);
    let bias = Packed::select(small, Packed::constant(bias - f64::from(up)), Packed::constant(bias));
    let root_half = R::Element::ROOT_HALF;
    let one = (R::Element::BIAS as u64) << digits;
    let bits = y.plus(one - root_half);
    // (the exponent as the lowest bits of 2ᵈ, d the number of digits, is a number)
    let k = bits.down(digits).or((R::Element::BIAS as u64 + u64::from(digits)) << digits) + bias;
    let m = bits.and((1 << digits) - 1).plus(root_half);
    Parts { k, m, unusual: (!all).then_some(usual) }
}

/// ln x
#[inline(always)]
pub(super) fn ln<R: Register>(x: Packed<R>) -> Packed<R> {
    let Parts { k, m, unusual } = parts(x);
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let [a, b] = R::Element::LN2;
    let half = f * f * 0.5;
    let small = s.fma(z.fma(R::Element::ln_rest(z), half), k * b);
    let y = k.fma(Packed::constant(a), f - (half - small));
    if unusual.is_none() {
        return y;
    }
    let (zero, infinity) = (Packed::constant(0.0), Packed::constant(f64::INFINITY));
    let y = Packed::select(x.lt(infinity), y, x);
    let y = Packed::select(x.lt(zero), Packed::constant(f64::NAN), y);
    Packed::select(x.le(zero) & zero.le(x), -infinity, y)
}

/// ln 2ᵏ m, with about ten more digits than one number has.
#[inline(always)]
fn ln_exact<R: Register>(k: Packed<R>, m: Packed<R>) -> Exact<R> {
    // s = (m − 1)/(m + 1)
    let (f, d) = (m - 1.0, m + 1.0);
    let lost = m - (d - 1.0);
    let s = f / d;
    let p = product(s, d);
    let s_low = ((f - p.high) - p.low - s * lost) / d;
    // z = s², c = ⅔ + …, and c z s
    let mut z = product(s, s);
    z.low = s.fma(s_low * 2.0, z.low);
    let [a, b] = R::Element::TWO_THIRDS;
    let mut c = sum(Packed::constant(a), z.high * R::Element::ln_rest_exact(z.high));
    c.low = c.low + b;
    let mut g = product(z.high, c.high);
    g.low = g.low + z.high * c.low + z.low * c.high;
    let mut h = product(s, g.high);
    h.low = h.low + s * g.low + s_low * g.high;
    // all together
    let [a, b] = R::Element::LN2;
    let large = sum(k * a, s * 2.0);
    let whole = sum(large.high, h.high);
    sum(whole.high, whole.low + large.low + (h.low + s_low * 2.0 + k * b))
}

/// xᵖ
#[inline(always)]
pub(super) fn powf<R: Register>(x: Packed<R>, p: f64) -> Packed<R> {
    if p == 0.0 {
        return Packed::constant(1.0);
    }
    let Parts { k, m, unusual } = parts(x);
    let ln = ln_exact(k, m);
    let high = R::Element::nearest(p).wide();
    let rest = Packed::constant(p - high);
    let high = Packed::constant(high);
    let w = product(high, ln.high);
    let low = w.low + high * ln.low + rest * ln.high;
    // where the result is zero or infinite, errors may have become so as well
    let [least, most] = R::Element::EXP_RANGE;
    let inside = Packed::constant(least).lt(w.high) & w.high.lt(Packed::constant(most));
    let y = exp_of(Exact { high: w.high, low: Packed::select(inside, low, Packed::constant(0.0)) });
    if unusual.is_none() {
        return y;
    }
    let (zero, infinity) = (Packed::constant(0.0), Packed::constant(f64::INFINITY));
    let (at_zero, at_infinity) = if p > 0.0 { (zero, infinity) } else { (infinity, zero) };
    let y = Packed::select(x.lt(infinity), y, Packed::select(infinity.le(x), at_infinity, x));
    let y = Packed::select(x.lt(zero), Packed::constant(f64::NAN), y);
    Packed::select(x.le(zero) & zero.le(x), at_zero, y)
}

/// An angle ≥ 0 within −π/4…π/4, and how many quarter turns were taken away, as the lowest bits.
struct Reduced<R> {
    r: Packed<R>,
    quarters: Packed<R>,
}

#[inline(always)]
fn reduced<R: Register>(x: Packed<R>) -> Reduced<R> {
    let shifter = Packed::constant(R::Element::SHIFTER);
    let quarters = x.fma(Packed::constant(std::f64::consts::FRAC_2_PI), shifter);
    let n = quarters - shifter;
    if R::FUSED {
        // (does not care how long the products are)
        let mut r = x;
        for &part in R::Element::HALF_PI {
            r = n.fma(Packed::constant(-part), r);
        }
        return Reduced { r, quarters };
    }
    // the first difference is exact; what the next ones lose is kept for the end (one that is smaller than what is
    // taken from it loses nothing)
    let [first, middle @ .., last] = R::Element::HALF_PI_SHORT else { unreachable!() };
    let (mut r, mut lost) = (x - n * *first, n * -last);
    for &part in middle {
        let Exact { high, low } = sum(r, n * -part);
        (r, lost) = (high, lost + low);
    }
    let r = r + lost;
    Reduced { r, quarters }
}

impl<R: Register> Reduced<R> {
    #[inline(always)]
    fn sin(&self) -> Packed<R> {
        let (r, z) = (self.r, self.r * self.r);
        (r * z).fma(R::Element::sin_rest(z), r)
    }
    #[inline(always)]
    fn cos(&self) -> Packed<R> {
        let z = self.r * self.r;
        let half = z * 0.5;
        let most = 1.0 - half;
        most + (z * z).fma(R::Element::cos_rest(z), (1.0 - most) - half)
    }
    /// Whether the number of quarters is odd.
    #[inline(always)]
    fn odd(&self) -> R::Mask {
        self.quarters.up(R::Element::BITS - 1).signed()
    }
}

/// The sign of the sine (`first` = 0) or the cosine (1) after so many quarters.
#[inline(always)]
fn sign_after<R: Register>(quarters: Packed<R>, first: u64) -> Packed<R> {
    quarters.plus(first).up(R::Element::BITS - 2).sign()
}

/// sin x. Lanes beyond 2²⁰ (2¹³ in single precision) are left to the standard library, whose last digits may depend
/// on the platform; so it is with the cosine.
#[inline(always)]
pub(super) fn sin<R: Register>(x: Packed<R>) -> Packed<R> {
    let a = x.abs();
    let t = reduced(a);
    let y = Packed::select(t.odd(), t.cos(), t.sin());
    let y = y.xor(sign_after(t.quarters, 0)).xor(x.sign());
    within_range(x, a, y, f64::sin)
}

/// cos x
#[inline(always)]
pub(super) fn cos<R: Register>(x: Packed<R>) -> Packed<R> {
    let a = x.abs();
    let t = reduced(a);
    let y = Packed::select(t.odd(), t.sin(), t.cos());
    let y = y.xor(sign_after(t.quarters, 1));
    within_range(x, a, y, f64::cos)
}

/// y, or f(x) where the magnitude a of x is too large.
#[inline(always)]
fn within_range<R: Register>(x: Packed<R>, a: Packed<R>, y: Packed<R>, f: fn(f64) -> f64) -> Packed<R> {
    let within = a.le(Packed::constant(R::Element::ANGLE_RANGE));
    if within.decided() == Some(true) {
        return y;
    }
    let mut lanes = x.spill();
    one_by_one(&mut lanes[..R::WIDTH], f);
    Packed::select(within, y, Packed::restored(&lanes))
}

#[cold]
#[inline(never)]
fn one_by_one<E: Element>(numbers: &mut [E], f: fn(f64) -> f64) {
    numbers.iter_mut().for_each(|x| *x = E::nearest(f(x.wide())));
}

/// tanh x = t/(t + 2) with t = e²ˣ − 1
#[inline(always)]
pub(super) fn tanh<R: Register>(x: Packed<R>) -> Packed<R> {
    let a = x.abs().at_most(R::Element::TANH_RANGE) * 2.0;
    let shifter = Packed::constant(R::Element::SHIFTER);
    let n = a.fma(Packed::constant(std::f64::consts::LOG2_E), shifter) - shifter;
    let mut r = a;
    for part in R::Element::LN2 {
        r = n.fma(Packed::constant(-part), r);
    }
    let power = power_of_two(n);
    let t = power.fma((r * r).fma(R::Element::exp_rest(r), r), power - 1.0);
    // (never more than one)
    (t / (t + 2.0)).xor(x.sign())
}

/// arccos x, from arcsin x up to ½ and from arcsin √((1 − x)/2) beyond
#[inline(always)]
pub(super) fn acos<R: Register>(x: Packed<R>) -> Packed<R> {
    let a = x.abs().at_most(1.0);
    let large = Packed::constant(0.5).lt(a);
    let z = Packed::select(large, (1.0 - a) * 0.5, a * a);
    let s = Packed::select(large, z.sqrt(), a);
    let [high, low] = R::Element::PI;
    // π or 0 or π/2, plus ±2 or ∓1 times the arc sine
    let beyond = x.lt(Packed::constant(0.0));
    let whole = |part: f64| {
        let end = Packed::select(beyond, Packed::constant(part), Packed::constant(0.0));
        Packed::select(large, end, Packed::constant(0.5 * part))
    };
    let factor = Packed::select(large, Packed::constant(2.0), Packed::constant(-1.0)).xor(x.sign());
    let s = s * factor;
    whole(high) + (s + (s * z).fma(R::Element::asin_rest(z), whole(low)))
}

/// The angle of the point (x, y).
#[inline(always)]
pub(super) fn atan2<R: Register>(y: Packed<R>, x: Packed<R>) -> Packed<R> {
    let (a, b) = (y.abs(), x.abs());
    let steep = b.lt(a);
    let (small, large) = (Packed::select(steep, b, a), Packed::select(steep, a, b));
    let (zero, infinity) = (Packed::constant(0.0), Packed::constant(f64::INFINITY));
    let mut q = small / large;
    if (zero.lt(large) & large.lt(infinity)).decided() != Some(true) {
        q = Packed::select(small.le(zero) & large.le(zero), zero, q);
        q = Packed::select(infinity.le(small) & infinity.le(large), Packed::constant(1.0), q);
    }
    let z = q * q;
    let [high, low] = R::Element::PI;
    // 0, π/2 or π, plus or minus the arc tangent of q
    let behind = x.signed();
    let whole = |part: f64| {
        let end = Packed::select(behind, Packed::constant(part), zero);
        Packed::select(steep, Packed::constant(0.5 * part), end)
    };
    let sign = x.sign();
    let q = q.xor(Packed::select(steep, sign.xor(Packed::pattern(R::Element::SIGN)), sign));
    let angle = whole(high) + (q + (q * z).fma(R::Element::atan_rest(z - 0.5), whole(low)));
    angle.xor(y.sign())
}

/// 1 − erf x
#[inline(always)]
pub(super) fn erfc<R: Register>(x: Packed<R>) -> Packed<R> {
    let a = x.abs().at_most(R::Element::ERFC_RANGE);
    // up to ½, from erf; its largest part, x, is taken away first
    let z = a * a;
    let small = (a * z).fma(R::Element::erf_rest(z), a * (std::f64::consts::FRAC_2_SQRT_PI - 1.0));
    let near = (1.0 - a.xor(x.sign())) - small.xor(x.sign());
    // beyond, e^(−x²) times what is left
    let [p, q, c] = R::Element::ERFC_MAP;
    let u = p - q / (a + c);
    let d = sum(a * 2.0, Packed::constant(1.0));
    let rest = R::Element::erfc_rest(u) / d.high;
    // (what rounding has cost the denominator, in relation to it: the rest is nearly 1.2/d)
    let missing = d.low * rest * (-1.0 / 1.2);
    let square = product(a, a);
    let (power, n) = exp_parts(Exact { high: -square.high, low: missing - square.low });
    let far = rest.fma(power, rest).scaled(n);
    let far = Packed::select(x.lt(Packed::constant(0.0)), 2.0 - far, far);
    Packed::select(a.lt(Packed::constant(0.5)), near, far)
}
