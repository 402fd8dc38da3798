//! Units, dimensions and physical constants.
//!
//! Inside the program lengths are in nm, times in ps, masses in u, charges in e and temperatures in K. The
//! energy that follows, u·nm²/ps², is 1 kJ/mol: an energy "per mole" and the energy of one particle are the
//! same number. One mole of u is taken as exactly one gram, so that energies, masses and pressures written in
//! SI units stay coherent (CODATA 2018 differs from that by 3.5e-10, less than the noise of any force field).
//!
//! [`parse_quantity`] reads `"1 kcal/mol/A^2"`; [`read_quantity`] also checks the dimension and accepts a bare
//! number in the file's [`UnitSystem`]; [`format_quantity`] writes a quantity that reads back to the same bits.
//!
//! Conversions between decimal units move the exponent of the decimal text, so `"3 A"` is exactly the number
//! that `0.3` is.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use potentials::param::Dimension;

/// Physical constants, CODATA 2018 (E. Tiesinga et al., Rev. Mod. Phys. 93, 025010, 2021), in internal units
/// unless their names say SI.
pub mod constants {
    /// Avogadro constant, 1/mol (exact).
    pub const AVOGADRO: f64 = 6.022_140_76e23;
    /// Boltzmann constant in J/K (exact).
    pub const BOLTZMANN_SI: f64 = 1.380_649e-23;
    /// Elementary charge in C (exact).
    pub const ELEMENTARY_CHARGE_SI: f64 = 1.602_176_634e-19;
    /// Planck constant in J s (exact).
    pub const PLANCK_SI: f64 = 6.626_070_15e-34;
    /// Speed of light in m/s (exact).
    pub const SPEED_OF_LIGHT_SI: f64 = 299_792_458.0;
    /// Electric constant ε₀ in F/m (recommended value).
    pub const ELECTRIC_CONSTANT_SI: f64 = 8.854_187_812_8e-12;
    /// Bohr radius in nm (recommended value, 5.291 772 109 03e-11 m).
    pub const BOHR: f64 = 0.052_917_721_090_3;
    /// Boltzmann constant in kJ/mol/K, which is also the molar gas constant.
    pub const BOLTZMANN: f64 = 1.380_649 * 6.022_140_76 * 1e-3;
    /// Coulomb constant N_A e² / (4π ε₀) in kJ/mol nm/e², 138.935 457 64….
    pub const COULOMB: f64 =
        1.602_176_634 * 1.602_176_634 * 6.022_140_76 * 1e3 / (4.0 * std::f64::consts::PI * 8.854_187_812_8);
    /// Planck constant in kJ/mol ps.
    pub const PLANCK: f64 = 6.626_070_15 * 6.022_140_76 * 1e-2;
    /// One bar in kJ/mol/nm³.
    pub const BAR: f64 = 0.060_221_407_6;
}

/// The declared units of a file: what its bare numbers mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UnitSystem {
    /// nm, ps, u, kJ/mol, e, K: the internal units.
    #[default]
    Md,
    /// Å, fs, u, kcal/mol, e, K; pressures in atm.
    Real,
    /// Å, ps, u, eV, e, K; pressures in bar.
    Metal,
    /// Reduced units: σ, ε, m and k_B are 1, and so is the Coulomb constant.
    Lj,
}

impl UnitSystem {
    /// Every system by the name it has in a file.
    pub const ALL: [(&'static str, UnitSystem); 4] =
        [("md", Self::Md), ("real", Self::Real), ("metal", Self::Metal), ("lj", Self::Lj)];

    /// The name in a file.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, s)| *s == self).map_or("md", |(name, _)| name)
    }

    /// The Boltzmann constant: kJ/mol/K, or 1 in reduced units.
    pub fn boltzmann(self) -> f64 {
        if self == Self::Lj { 1.0 } else { constants::BOLTZMANN }
    }

    /// The Coulomb constant: kJ/mol nm/e², or 1 in reduced units.
    pub fn coulomb(self) -> f64 {
        if self == Self::Lj { 1.0 } else { constants::COULOMB }
    }
}

impl fmt::Display for UnitSystem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is wrong with a quantity, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnitError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes from the beginning of the text.
    pub span: Range<usize>,
    /// What to do about it.
    pub help: Option<String>,
}

impl UnitError {
    fn new(message: impl Into<String>, span: Range<usize>) -> Self {
        Self { message: message.into(), span, help: None }
    }
    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// One entry of the list of units.
#[derive(Clone, Copy, Debug)]
pub struct KnownUnit {
    /// Its spellings, the usual one first.
    pub names: &'static [&'static str],
    /// What it measures.
    pub dimension: Dimension,
    /// What it is.
    pub doc: &'static str,
    /// Whether prefixes (`n`, `k`, …) may stand before the first name.
    pub prefixes: bool,
    factor: f64,
    ten: i32,
    avogadro: i32,
}

const fn unit(
    names: &'static [&'static str],
    dimension: Dimension,
    (factor, ten, avogadro): (f64, i32, i32),
    prefixes: bool,
    doc: &'static str,
) -> KnownUnit {
    KnownUnit { names, dimension, doc, prefixes, factor, ten, avogadro }
}

/// Every unit that may be written outside reduced units; `md explain units` prints this list.
///
/// The size of each in internal units is factor × 10^ten × N_A^avogadro; the power of N_A is kept apart so
/// that `kJ/mol` is exactly 1 and `kcal/mol` exactly 4.184.
pub const UNITS: &[KnownUnit] = &[
    unit(&["m"], Dimension::LENGTH, (1.0, 9, 0), true, "metre"),
    unit(&["A", "Å", "\u{212b}", "angstrom"], Dimension::LENGTH, (1.0, -1, 0), false, "ångström, 0.1 nm"),
    unit(
        &["bohr"],
        Dimension::LENGTH,
        (constants::BOHR * 10.0, -1, 0),
        false,
        "atomic unit of length, 0.0529177210903 nm",
    ),
    unit(&["s"], Dimension::TIME, (1.0, 12, 0), true, "second"),
    unit(&["u", "amu"], Dimension::MASS, (1.0, 0, 0), false, "atomic mass unit, 1 g/mol"),
    unit(&["Da"], Dimension::MASS, (1.0, 0, 0), true, "dalton, the same as u"),
    unit(&["g"], Dimension::MASS, (1.0, 0, 1), true, "gram"),
    unit(&["e"], Dimension::CHARGE, (1.0, 0, 0), false, "elementary charge"),
    unit(&["C"], Dimension::CHARGE, (1.0 / 1.602_176_634, 19, 0), true, "coulomb"),
    unit(&["K", "kelvin"], Dimension::TEMPERATURE, (1.0, 0, 0), true, "kelvin"),
    unit(&["J"], Dimension::ENERGY, (1.0, -3, 1), true, "joule; `kJ/mol` is the internal unit"),
    unit(&["cal"], Dimension::ENERGY, (4.184, -3, 1), true, "thermochemical calorie, 4.184 J"),
    unit(&["eV"], Dimension::ENERGY, (1.602_176_634, -22, 1), true, "electronvolt"),
    unit(
        &["Ha", "hartree"],
        Dimension::ENERGY,
        (4.359_744_722_207_1, -21, 1),
        false,
        "hartree, atomic unit of energy",
    ),
    unit(&["Ry", "rydberg"], Dimension::ENERGY, (4.359_744_722_207_1 / 2.0, -21, 1), false, "half a hartree"),
    unit(&["mol"], Dimension::NONE, (1.0, 0, 1), true, "mole, a number"),
    unit(&["N"], Dimension::FORCE, (1.0, -12, 1), true, "newton"),
    unit(&["Pa"], Dimension::PRESSURE, (1.0, -30, 1), true, "pascal"),
    unit(&["bar"], Dimension::PRESSURE, (1.0, -25, 1), true, "100 kPa"),
    unit(&["atm"], Dimension::PRESSURE, (1.01325, -25, 1), false, "standard atmosphere, 101325 Pa"),
    unit(&["V"], Dimension::ENERGY.per(Dimension::CHARGE), (1.602_176_634, -22, 1), true, "volt"),
    unit(
        &["D", "debye"],
        Dimension::CHARGE.times(Dimension::LENGTH),
        (1.0 / (2.997_924_58 * 1.602_176_634), -1, 0),
        false,
        "debye, 1e-21 C m²/s divided by the speed of light",
    ),
    unit(&["L"], Dimension::LENGTH.powi(3), (1.0, 24, 0), true, "litre"),
    unit(&["Hz"], Dimension::TIME.powi(-1), (1.0, -12, 0), true, "hertz, 1/s"),
    unit(&["rad", "radian"], Dimension::NONE, (1.0, 0, 0), false, "radian, the number 1"),
    unit(
        &["deg", "°", "degree", "degrees"],
        Dimension::NONE,
        (std::f64::consts::PI / 180.0, 0, 0),
        false,
        "degree, π/180",
    ),
];

/// The units of a file in reduced units, all of size 1.
pub const REDUCED_UNITS: &[KnownUnit] = &[
    unit(&["σ", "sigma"], Dimension::LENGTH, (1.0, 0, 0), false, "unit of length"),
    unit(&["ε", "epsilon"], Dimension::ENERGY, (1.0, 0, 0), false, "unit of energy"),
    unit(&["m"], Dimension::MASS, (1.0, 0, 0), false, "unit of mass"),
    unit(&["τ", "tau"], Dimension::TIME, (1.0, 0, 0), false, "unit of time, σ √(m/ε)"),
    unit(&["q"], Dimension::CHARGE, (1.0, 0, 0), false, "unit of charge, √(4π ε₀ σ ε)"),
    unit(
        &["kB"],
        Dimension::ENERGY.per(Dimension::TEMPERATURE),
        (1.0, 0, 0),
        false,
        "Boltzmann constant; ε/kB is the unit of temperature",
    ),
];

const PREFIXES: &[(&str, i32)] = &[
    ("f", -15),
    ("p", -12),
    ("n", -9),
    ("u", -6),
    ("µ", -6),
    ("μ", -6),
    ("m", -3),
    ("c", -2),
    ("d", -1),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
];

/// The size of a unit: factor × 10^ten × N_A^avogadro, and its exponents of the base quantities.
#[derive(Clone, Copy, Debug)]
struct Size {
    factor: f64,
    ten: i32,
    avogadro: i32,
    exponents: [i32; 5],
}

const EXPONENT_LIMIT: i32 = 24;

impl Size {
    const ONE: Self = Self { factor: 1.0, ten: 0, avogadro: 0, exponents: [0; 5] };

    fn of(unit: &KnownUnit, prefix: i32) -> Self {
        let d = unit.dimension;
        Self {
            factor: unit.factor,
            ten: unit.ten + prefix,
            avogadro: unit.avogadro,
            exponents: [d.length, d.mass, d.time, d.charge, d.temperature].map(i32::from),
        }
    }

    /// The product; `None` if an exponent is absurd.
    fn times(self, other: Self) -> Option<Self> {
        let mut exponents = self.exponents;
        for (a, b) in exponents.iter_mut().zip(other.exponents) {
            *a += b;
        }
        let product = Self {
            factor: self.factor * other.factor,
            ten: self.ten + other.ten,
            avogadro: self.avogadro + other.avogadro,
            exponents,
        };
        product.sane().then_some(product)
    }

    fn powi(self, n: i32) -> Option<Self> {
        if n.abs() > EXPONENT_LIMIT {
            return None;
        }
        let power = Self {
            factor: self.factor.powi(n),
            ten: self.ten * n,
            avogadro: self.avogadro * n,
            exponents: self.exponents.map(|x| x * n),
        };
        power.sane().then_some(power)
    }

    fn sane(self) -> bool {
        self.factor.is_finite()
            && self.factor != 0.0
            && self.ten.abs() <= 10_000
            && self.avogadro.abs() <= EXPONENT_LIMIT
            && self.exponents.iter().all(|x| x.abs() <= EXPONENT_LIMIT)
    }

    fn dimension(self) -> Dimension {
        let [l, m, t, q, k] = self.exponents.map(|x| x as i8);
        Dimension::base(l, m, t, q, k)
    }

    /// The number and the power of ten it is to be multiplied with.
    fn scale(self) -> (f64, i32) {
        (self.factor * 6.022_140_76_f64.powi(self.avogadro), self.ten + 23 * self.avogadro)
    }
}

/// A decimal number as text: mantissa and exponent of ten, so that units shift the exponent without rounding.
struct Decimal {
    mantissa: String,
    exponent: i64,
}

impl Decimal {
    fn times(&self, size: Size) -> f64 {
        let (factor, ten) = size.scale();
        let shift = self.exponent + i64::from(ten);
        if factor == 1.0 {
            return format!("{}e{shift}", self.mantissa).parse().unwrap_or(f64::NAN);
        }
        // The product in its shortest digits, so that 4.184 × 10² is the number 418.4.
        let product = self.mantissa.parse::<f64>().unwrap_or(f64::NAN) * factor;
        let text = format!("{product:e}");
        match text.split_once('e').and_then(|(m, e)| Some((m, e.parse::<i64>().ok()?))) {
            Some((mantissa, e)) => format!("{mantissa}e{}", e + shift).parse().unwrap_or(f64::NAN),
            None => product,
        }
    }

    fn is_zero(&self) -> bool {
        !self.mantissa.bytes().any(|b| b.is_ascii_digit() && b != b'0')
    }
}

/// Reads a quantity such as `"1 kcal/mol/A^2"`: its value in internal units and its dimension.
///
/// A number without a unit has the dimension [`Dimension::NONE`]. Units combine with `*`, `·` or a space, `/`,
/// `^` (or `²`, `³`, `⁻¹`) and parentheses, from left to right.
///
/// # Errors
/// When the text is not a finite number followed by known units; the error says where.
pub fn parse_quantity(text: &str, system: UnitSystem) -> Result<(f64, Dimension), UnitError> {
    let (value, size) = parse(text, system)?;
    Ok((value, size.map_or(Dimension::NONE, Size::dimension)))
}

/// What stresses and elastic constants are shown in, and what 1 kJ/mol/nm³ is in that.
pub fn stress(system: UnitSystem) -> (&'static str, f64) {
    match system {
        UnitSystem::Lj => ("ε/σ³", 1.0),
        _ => ("GPa", 1e-4 / constants::BAR),
    }
}

/// What vibrations are shown in, and what an angular frequency of 1/ps is in that: wave numbers, or 1/τ.
pub fn frequency(system: UnitSystem) -> (&'static str, f64) {
    match system {
        UnitSystem::Lj => ("1/τ", 1.0),
        // (ω in 1/ps is 10¹² ω/2πc in 1/m)
        _ => ("1/cm", 1e12 / (std::f64::consts::TAU * constants::SPEED_OF_LIGHT_SI * 100.0)),
    }
}

/// Reads a quantity of a known dimension: with a unit of that dimension, or a bare number in the system's units.
///
/// # Errors
/// As [`parse_quantity`], and when the dimension is another one.
pub fn read_quantity(text: &str, dimension: Dimension, system: UnitSystem) -> Result<f64, UnitError> {
    let mut parser = Parser { text, at: 0, system, depth: 0, bulk: None, moles: false };
    let decimal = parser.number()?;
    let unit_start = parser.skip_space();
    match parser.units()? {
        None => parser.value(&decimal, declared(dimension, system)),
        Some(size) => {
            let value = parser.value(&decimal, size)?;
            check_dimension(dimension, size.dimension(), system)
                .map_err(|message| UnitError::new(message, unit_start..text.trim_end().len()))?;
            Ok(value)
        }
    }
}

fn parse(text: &str, system: UnitSystem) -> Result<(f64, Option<Size>), UnitError> {
    let mut parser = Parser { text, at: 0, system, depth: 0, bulk: None, moles: false };
    let decimal = parser.number()?;
    let size = parser.units()?;
    Ok((parser.value(&decimal, size.unwrap_or(Size::ONE))?, size))
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    system: UnitSystem,
    depth: u32,
    /// The first `kJ`, `kcal` or `cal`, which hardly ever means the energy of one particle.
    bulk: Option<Range<usize>>,
    moles: bool,
}

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn skip_space(&mut self) -> usize {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.at
    }

    /// The span of the next character (empty at the end).
    fn here(&self) -> Range<usize> {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn digits(&mut self, into: &mut String) -> Result<bool, UnitError> {
        let mut any = false;
        loop {
            match self.peek() {
                Some(c) if c.is_ascii_digit() => into.push(c),
                Some('_') if any && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {}
                Some('_') => {
                    return Err(UnitError::new("`_` may only stand between two digits", self.here()));
                }
                _ => return Ok(any),
            }
            any = true;
            self.at += 1;
        }
    }

    fn number(&mut self) -> Result<Decimal, UnitError> {
        let start = self.skip_space();
        let mut mantissa = String::new();
        if self.eat('-') || self.eat('−') {
            mantissa.push('-');
        } else {
            self.eat('+');
        }
        let whole = self.digits(&mut mantissa)?;
        if !whole {
            mantissa.push('0');
        }
        let mut fraction = false;
        if self.eat('.') {
            mantissa.push('.');
            fraction = self.digits(&mut mantissa)?;
            if !fraction {
                mantissa.push('0');
            }
        }
        if !whole && !fraction {
            return Err(self.not_a_number(start));
        }
        if self.peek() == Some(',') {
            return Err(UnitError::new("a decimal comma", self.here())
                .help("numbers are written with a point: `0.5`"));
        }
        let mut exponent = 0;
        // `1e` is an elementary charge and `1eV` an energy; only a digit makes it an exponent.
        let after =
            self.rest().strip_prefix(['e', 'E']).map(|r| (r, r.strip_prefix(['+', '-']).unwrap_or(r)));
        if let Some((signed, unsigned)) = after
            && unsigned.starts_with(|c: char| c.is_ascii_digit())
        {
            let negative = signed.starts_with('-');
            self.at += self.rest().len() - unsigned.len();
            let mut digits = String::new();
            self.digits(&mut digits)?;
            exponent = digits.parse::<i64>().map_or(1_000_000, |e| e.min(1_000_000));
            if negative {
                exponent = -exponent;
            }
        }
        Ok(Decimal { mantissa, exponent })
    }

    fn not_a_number(&self, start: usize) -> UnitError {
        let rest = self.text[start..].trim_end();
        let bare = rest.trim_start_matches(['+', '-', '−']).to_ascii_lowercase();
        if rest.is_empty() {
            return UnitError::new("an empty text where a number was expected", 0..self.text.len());
        }
        let word = rest.split_whitespace().next().unwrap_or(rest);
        let span = start..start + word.len();
        if ["inf", "nan"].iter().any(|w| bare.starts_with(w)) {
            return UnitError::new(format!("`{word}` is not a finite number"), span);
        }
        UnitError::new(format!("expected a number, found `{word}`"), span)
    }

    fn value(&self, decimal: &Decimal, size: Size) -> Result<f64, UnitError> {
        let value = decimal.times(size);
        let span = 0..self.text.len();
        if !value.is_finite() {
            Err(UnitError::new("the number is too large", span))
        } else if value == 0.0 && !decimal.is_zero() {
            Err(UnitError::new("the number is too small to be told from zero", span))
        } else {
            Ok(value)
        }
    }

    /// The rest of the text as units; `None` when nothing is left.
    fn units(&mut self) -> Result<Option<Size>, UnitError> {
        self.skip_space();
        if self.rest().is_empty() {
            return Ok(None);
        }
        let size = self.product(true)?;
        if let Some(c) = self.peek() {
            return Err(UnitError::new(format!("unexpected `{c}`"), self.here()));
        }
        if let Some(bulk) = self.bulk.clone()
            && !self.moles
        {
            let name = &self.text[bulk.clone()];
            return Err(UnitError::new(format!("`{name}` without `/mol`"), bulk)
                .help(format!("an energy is per particle or per mole: write `{name}/mol`, `eV` or `J`")));
        }
        Ok(Some(size))
    }

    fn product(&mut self, may_begin_with_slash: bool) -> Result<Size, UnitError> {
        let start = self.skip_space();
        let mut size = Size::ONE;
        let mut divided = false;
        let mut first = true;
        loop {
            self.skip_space();
            let operator = self.here();
            let mut divide = false;
            match self.peek() {
                None | Some(')') if !first => return Ok(size),
                Some('/') if !first || may_begin_with_slash => {
                    self.at += 1;
                    divide = true;
                    divided = true;
                }
                Some('*' | '·' | '⋅') if !first => {
                    self.at += operator.len();
                }
                Some(c) if !first && divided && (is_unit_letter(c) || c == '(') => {
                    return Err(UnitError::new("a product after `/` that can be read in two ways", operator)
                        .help("use `/` again, `*`, or parentheses: `kJ/(mol nm)`"));
                }
                _ => {}
            }
            self.skip_space();
            let factor = self.power()?;
            let factor = if divide { factor.powi(-1) } else { Some(factor) };
            size = factor
                .and_then(|f| size.times(f))
                .ok_or_else(|| UnitError::new("an absurdly large exponent", start..self.at))?;
            first = false;
        }
    }

    fn power(&mut self) -> Result<Size, UnitError> {
        let start = self.at;
        let base = self.base()?;
        let mut exponent = 1;
        let before_exponent = self.at;
        self.skip_space();
        if self.eat('^') {
            self.skip_space();
            let parenthesis = self.eat('(');
            self.skip_space();
            let negative = self.eat('-') || self.eat('−');
            if !negative {
                self.eat('+');
            }
            let mut digits = String::new();
            self.digits(&mut digits)?;
            if parenthesis {
                self.skip_space();
                if !self.eat(')') {
                    return Err(UnitError::new("expected `)`", self.here()));
                }
            }
            if digits.is_empty() || self.peek() == Some('.') {
                return Err(UnitError::new("expected a whole number as exponent", self.here()));
            }
            exponent = digits.parse::<i32>().unwrap_or(i32::MAX);
            if negative {
                exponent = -exponent;
            }
        } else {
            self.at = before_exponent;
            let raised: String = self.rest().chars().map_while(superscript_digit).collect();
            if !raised.is_empty() {
                self.at += self
                    .rest()
                    .chars()
                    .take_while(|c| superscript_digit(*c).is_some())
                    .map(char::len_utf8)
                    .sum::<usize>();
                exponent = raised.parse().map_err(|_| {
                    UnitError::new("expected a whole number as exponent", before_exponent..self.at)
                })?;
            } else if let Some(c) = self.peek()
                && (c.is_ascii_digit() || c == '-')
            {
                return Err(UnitError::new(format!("unexpected `{c}`"), self.here())
                    .help("an exponent is written `^2`, `^-1` or `²`"));
            }
        }
        base.powi(exponent).ok_or_else(|| UnitError::new("an absurdly large exponent", start..self.at))
    }

    fn base(&mut self) -> Result<Size, UnitError> {
        if self.peek() == Some('(') {
            let open = self.here();
            self.depth += 1;
            if self.depth > 16 {
                return Err(UnitError::new("too many parentheses", open));
            }
            self.at += 1;
            let size = self.product(false)?;
            if !self.eat(')') {
                return Err(UnitError::new("this `(` is never closed", open));
            }
            self.depth -= 1;
            return Ok(size);
        }
        if self.peek() == Some('1') && !self.rest()[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            self.at += 1;
            return Ok(Size::ONE);
        }
        let length: usize = self.rest().chars().take_while(|c| is_unit_letter(*c)).map(char::len_utf8).sum();
        if length == 0 {
            return Err(match self.peek() {
                Some(c) => UnitError::new(format!("expected a unit, found `{c}`"), self.here()),
                None => UnitError::new("expected a unit, found the end", self.here()),
            });
        }
        let span = self.at..self.at + length;
        let name = &self.text[span.clone()];
        self.at = span.end;
        let size = self.lookup(name, span.clone())?;
        if matches!(name, "kJ" | "kcal" | "cal") && self.system != UnitSystem::Lj {
            self.bulk.get_or_insert(span);
        }
        self.moles |= name.ends_with("mol");
        Ok(size)
    }

    fn lookup(&self, name: &str, span: Range<usize>) -> Result<Size, UnitError> {
        let physical = find_unit(name);
        if self.system == UnitSystem::Lj {
            if let Some(unit) = REDUCED_UNITS.iter().find(|u| u.names.contains(&name)) {
                return Ok(Size::of(unit, 0));
            }
            let names = REDUCED_UNITS.iter().flat_map(|u| u.names).copied();
            return Err(match physical {
                Some(_) => UnitError::new(
                    format!("the physical unit `{name}` in a file with `units = \"lj\"`"),
                    span,
                )
                .help("reduced quantities are bare numbers, in units of σ, ε, m and τ"),
                None => unknown_unit(name, span, names.map(str::to_owned)),
            });
        }
        if let Some(size) = physical {
            return Ok(size);
        }
        if REDUCED_UNITS.iter().any(|u| u.names.contains(&name)) {
            return Err(UnitError::new(
                format!("the reduced unit `{name}` in a file with physical units"),
                span,
            )
            .help("reduced units need `units = \"lj\"`"));
        }
        Err(unknown_unit(name, span, spellings()))
    }
}

fn unknown_unit(name: &str, span: Range<usize>, known: impl Iterator<Item = String>) -> UnitError {
    let error = UnitError::new(format!("unknown unit `{name}`"), span);
    match nearest(name, known) {
        Some(best) => error.help(format!("did you mean `{best}`?")),
        None => error.help("`md explain units` lists the units"),
    }
}

/// The known name nearest to a misspelled one, if any is near.
fn nearest(name: &str, known: impl Iterator<Item = String>) -> Option<String> {
    let lower = name.to_lowercase();
    let limit = if name.chars().count() < 3 { 1 } else { 2 };
    known
        .map(|k| {
            let same_but_case = k.to_lowercase() == lower;
            let common = k.to_lowercase().chars().zip(lower.chars()).take_while(|(a, b)| a == b).count();
            let distance = if same_but_case { 0 } else { strsim::osa_distance(&k.to_lowercase(), &lower) };
            (distance, std::cmp::Reverse(common), k)
        })
        .filter(|(d, _, k)| *d == 0 || (*d <= limit && k.chars().count() > 1 && *d < name.chars().count()))
        .min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))
        .map(|(_, _, k)| k)
}

/// Everything a suggestion may say: the names, and the usual prefixed ones.
fn spellings() -> impl Iterator<Item = String> {
    let usual = [
        "nm", "pm", "um", "cm", "fs", "ps", "ns", "us", "kg", "kJ", "kcal", "meV", "kPa", "MPa", "GPa",
        "Mbar", "kbar", "pN", "nN", "THz", "kDa",
    ];
    usual.into_iter().chain(UNITS.iter().flat_map(|u| u.names).copied()).map(str::to_owned)
}

fn find_unit(name: &str) -> Option<Size> {
    if let Some(unit) = UNITS.iter().find(|u| u.names.contains(&name)) {
        return Some(Size::of(unit, 0));
    }
    PREFIXES.iter().find_map(|(prefix, ten)| {
        let stem = name.strip_prefix(prefix)?;
        let unit = UNITS.iter().find(|u| u.prefixes && u.names.first() == Some(&stem))?;
        Some(Size::of(unit, *ten))
    })
}

fn is_unit_letter(c: char) -> bool {
    c == '°' || (c.is_alphabetic() && superscript_digit(c).is_none())
}

const SUPERSCRIPTS: [(char, char); 11] = [
    ('⁰', '0'),
    ('¹', '1'),
    ('²', '2'),
    ('³', '3'),
    ('⁴', '4'),
    ('⁵', '5'),
    ('⁶', '6'),
    ('⁷', '7'),
    ('⁸', '8'),
    ('⁹', '9'),
    ('⁻', '-'),
];

fn superscript_digit(c: char) -> Option<char> {
    SUPERSCRIPTS.iter().find(|(raised, _)| *raised == c).map(|(_, plain)| *plain)
}

fn superscript(n: i32) -> String {
    let raise = |c: char| SUPERSCRIPTS.iter().find(|(_, plain)| *plain == c).map_or(c, |(raised, _)| *raised);
    if n == 1 { String::new() } else { n.to_string().chars().map(raise).collect() }
}

/// The quantities that names and symbols are composed of.
#[derive(Clone, Copy, PartialEq)]
enum Base {
    Energy,
    Mass,
    Charge,
    Length,
    Time,
    Temperature,
}

/// A dimension as powers of energy (where mass and time come as in an energy) and the base quantities.
fn parts(d: Dimension) -> Vec<(Base, i32)> {
    let [mut length, mut mass, mut time] = [d.length, d.mass, d.time].map(i32::from);
    let mut energy = 0;
    if mass != 0 && time == -2 * mass {
        energy = mass;
        length -= 2 * mass;
        mass = 0;
        time = 0;
    }
    let all = [
        (Base::Energy, energy),
        (Base::Mass, mass),
        (Base::Charge, d.charge.into()),
        (Base::Length, length),
        (Base::Time, time),
        (Base::Temperature, d.temperature.into()),
    ];
    all.into_iter().filter(|(_, n)| *n != 0).collect()
}

/// `a·b²/c` from names and exponents; a name that is itself a quotient gets parentheses where needed.
fn compose(parts: &[(Base, i32)], name: impl Fn(Base) -> &'static str) -> String {
    let mut text = String::new();
    let power = |base: Base, n: i32, below: bool| {
        let name = name(base);
        let parentheses = name.contains('/') && (n != 1 || below);
        let body = if parentheses { format!("({name})") } else { name.to_owned() };
        body + &superscript(n)
    };
    for &(base, n) in parts.iter().filter(|(_, n)| *n > 0) {
        if !text.is_empty() {
            text.push('·');
        }
        text.push_str(&power(base, n, false));
    }
    if text.is_empty() {
        text.push('1');
    }
    for &(base, n) in parts.iter().filter(|(_, n)| *n < 0) {
        text.push('/');
        text.push_str(&power(base, -n, true));
    }
    text
}

/// What a dimension is called: "a length", "energy/length²".
pub fn describe(dimension: Dimension) -> String {
    let name = |name: &str| name.to_owned();
    match dimension {
        Dimension::NONE => name("a plain number"),
        Dimension::LENGTH => name("a length"),
        Dimension::MASS => name("a mass"),
        Dimension::TIME => name("a time"),
        Dimension::CHARGE => name("a charge"),
        Dimension::TEMPERATURE => name("a temperature"),
        Dimension::ENERGY => name("an energy"),
        Dimension::FORCE => name("a force"),
        Dimension::PRESSURE => name("a pressure"),
        Dimension::VELOCITY => name("a velocity"),
        d if d == Dimension::LENGTH.powi(2) => name("an area"),
        d if d == Dimension::LENGTH.powi(3) => name("a volume"),
        d if d == Dimension::TIME.powi(-1) => name("a rate"),
        d if d == Dimension::MASS.per(Dimension::LENGTH.powi(3)) => name("a density"),
        d => compose(&parts(d), |base| match base {
            Base::Energy => "energy",
            Base::Mass => "mass",
            Base::Charge => "charge",
            Base::Length => "length",
            Base::Time => "time",
            Base::Temperature => "temperature",
        }),
    }
}

/// A quantity of this dimension as a user would write it, without quotes.
pub fn example(dimension: Dimension) -> Cow<'static, str> {
    Cow::Borrowed(match dimension {
        Dimension::NONE => "1.5",
        Dimension::LENGTH => "9 A",
        Dimension::MASS => "15.999 u",
        Dimension::TIME => "0.5 fs",
        Dimension::CHARGE => "-0.8 e",
        Dimension::TEMPERATURE => "300 K",
        Dimension::ENERGY => "0.65 kJ/mol",
        Dimension::FORCE => "10 pN",
        Dimension::PRESSURE => "1 bar",
        Dimension::VELOCITY => "1 nm/ps",
        d if d == Dimension::LENGTH.powi(2) => "1 nm^2",
        d if d == Dimension::LENGTH.powi(3) => "1 nm^3",
        d if d == Dimension::TIME.powi(-1) => "1 /ps",
        d if d == Dimension::MASS.per(Dimension::LENGTH.powi(3)) => "1 g/cm^3",
        d if d == Dimension::ENERGY.per(Dimension::LENGTH.powi(2)) => "1000 kJ/mol/nm^2",
        d => return Cow::Owned(format!("1 {}", symbol(d, UnitSystem::Md))),
    })
}

/// The unit in which a system counts this dimension: `kJ/mol/nm²`, in reduced units `ε/σ²`; empty for a plain
/// number.
pub fn symbol(dimension: Dimension, system: UnitSystem) -> String {
    let parts = parts(dimension);
    match (dimension, system) {
        (Dimension::PRESSURE, UnitSystem::Real) => return "atm".to_owned(),
        (Dimension::PRESSURE, UnitSystem::Metal) => return "bar".to_owned(),
        _ if parts.is_empty() => return String::new(),
        _ => {}
    }
    compose(&parts, |base| base_symbol(base, system))
}

fn base_symbol(base: Base, system: UnitSystem) -> &'static str {
    use UnitSystem::{Lj, Md, Metal, Real};
    match (base, system) {
        (Base::Energy, Md) => "kJ/mol",
        (Base::Energy, Real) => "kcal/mol",
        (Base::Energy, Metal) => "eV",
        (Base::Energy, Lj) => "ε",
        (Base::Mass, Lj) => "m",
        (Base::Mass, _) => "u",
        (Base::Charge, Lj) => "q",
        (Base::Charge, _) => "e",
        (Base::Length, Md) => "nm",
        (Base::Length, Lj) => "σ",
        (Base::Length, _) => "Å",
        (Base::Time, Real) => "fs",
        (Base::Time, Lj) => "τ",
        (Base::Time, _) => "ps",
        (Base::Temperature, Lj) => "ε/kB",
        (Base::Temperature, _) => "K",
    }
}

/// The size of the declared unit of a dimension.
fn declared(dimension: Dimension, system: UnitSystem) -> Size {
    let energy = |ten| Size { ten, avogadro: 1, ..Size::ONE };
    let single = |base: Base| match (base, system) {
        (_, UnitSystem::Md | UnitSystem::Lj) => Size::ONE,
        (Base::Energy, UnitSystem::Real) => Size { factor: 4.184, ..Size::ONE },
        (Base::Energy, UnitSystem::Metal) => Size { factor: 1.602_176_634, ..energy(-22) },
        (Base::Length, _) => Size { ten: -1, ..Size::ONE },
        (Base::Time, UnitSystem::Real) => Size { ten: -3, ..Size::ONE },
        _ => Size::ONE,
    };
    if dimension == Dimension::PRESSURE {
        match system {
            UnitSystem::Real => return Size { factor: 1.01325, ..energy(-25) },
            UnitSystem::Metal => return energy(-25),
            _ => {}
        }
    }
    let product = parts(dimension)
        .into_iter()
        .try_fold(Size::ONE, |size, (base, n)| single(base).powi(n).and_then(|p| size.times(p)));
    product.unwrap_or(Size::ONE)
}

fn power_of_ten(n: i32) -> f64 {
    format!("1e{n}").parse().unwrap_or(f64::NAN)
}

/// A number in a system's unit of this dimension as a number in internal units.
pub fn to_internal(value: f64, dimension: Dimension, system: UnitSystem) -> f64 {
    let (factor, ten) = declared(dimension, system).scale();
    let scaled = if ten < 0 { value / power_of_ten(-ten) } else { value * power_of_ten(ten) };
    scaled * factor
}

/// A number in internal units as a number in a system's unit of this dimension.
pub fn from_internal(value: f64, dimension: Dimension, system: UnitSystem) -> f64 {
    let (factor, ten) = declared(dimension, system).scale();
    let scaled = value / factor;
    if ten < 0 { scaled * power_of_ten(-ten) } else { scaled / power_of_ten(ten) }
}

/// An internal value with the internal unit (in reduced units with the reduced one), in the shortest digits that
/// [`parse_quantity`] reads back to the same bits.
pub fn format_quantity(value: f64, dimension: Dimension, system: UnitSystem) -> String {
    let inside = if system == UnitSystem::Lj { system } else { UnitSystem::Md };
    let number = shortest(value);
    match symbol(dimension, inside) {
        unit if unit.is_empty() => number,
        unit if unit.starts_with("1/") => format!("{number} {}", &unit[1..]),
        unit => format!("{number} {unit}"),
    }
}

/// The shortest digits that read back to the same bits, without a needless `.0`.
fn shortest(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Whether a quantity has the dimension it should have; the message names both.
///
/// # Errors
/// `expected a length (such as "9 A"), found an energy (kJ/mol)`
pub fn check_dimension(expected: Dimension, found: Dimension, system: UnitSystem) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    let inside = if system == UnitSystem::Lj { system } else { UnitSystem::Md };
    let unit = symbol(found, inside);
    let unit = if unit.is_empty() { unit } else { format!(" ({unit})") };
    Err(format!("expected {}, found {}{unit}", expectation(expected, system), describe(found)))
}

/// What should be written: `a length (such as "9 A")`.
pub fn expectation(dimension: Dimension, system: UnitSystem) -> String {
    let what = describe(dimension);
    match system {
        UnitSystem::Lj => format!("{what} (a number such as 1.5)"),
        _ if dimension == Dimension::NONE => format!("{what} (such as 1.5)"),
        _ => format!("{what} (such as \"{}\")", example(dimension)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn md(text: &str) -> f64 {
        parse_quantity(text, UnitSystem::Md).unwrap_or_else(|e| panic!("{text}: {e}")).0
    }

    fn dimension(text: &str) -> Dimension {
        parse_quantity(text, UnitSystem::Md).unwrap_or_else(|e| panic!("{text}: {e}")).1
    }

    fn error(text: &str, system: UnitSystem) -> (String, Range<usize>, Option<String>) {
        let e = parse_quantity(text, system).unwrap_err();
        (e.message, e.span, e.help)
    }

    fn near(a: f64, b: f64, relative: f64) {
        assert!((a - b).abs() <= relative * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn constants_are_codata_2018() {
        // Molar gas constant, exact since 2019: 8.31446261815324 J/mol/K.
        near(constants::BOLTZMANN, 0.008_314_462_618_153_24, 1e-15);
        // Tables of the reference set: kJ/mol nm, kcal/mol A, eV A.
        near(constants::COULOMB, 138.935_457_64, 4e-11);
        near(constants::COULOMB / 4.184 * 10.0, 332.063_713_0, 1e-9);
        near(constants::COULOMB / md("1 eV") * 10.0, 14.399_645_48, 4e-10);
        near(constants::PLANCK, 0.399_031_271_2, 1e-9);
        assert_eq!(UnitSystem::Lj.boltzmann(), 1.0);
        assert_eq!(UnitSystem::Lj.coulomb(), 1.0);
    }

    #[test]
    fn decimal_units_convert_exactly() {
        assert_eq!(md("3 A"), 0.3);
        assert_eq!(md("9 Å"), 0.9);
        assert_eq!(md("0.1 A"), 0.01);
        assert_eq!(md("1.7 angstrom"), 0.17);
        assert_eq!(md("0.5 fs"), 0.0005);
        assert_eq!(md("7 ns"), 7000.0);
        assert_eq!(md("7 us"), 7e6);
        assert_eq!(md("1 pm"), 0.001);
        assert_eq!(md("1 kJ/mol"), 1.0);
        assert_eq!(md("1 kcal/mol"), 4.184);
        assert_eq!(md("1 kcal/mol/A^2"), 418.4);
        assert_eq!(md("15.999 g/mol"), 15.999);
        assert_eq!(md("15.999 Da"), 15.999);
        assert_eq!(md("1 J/mol"), 0.001);
    }

    #[test]
    fn values_from_arithmetic() {
        // 1 eV = 1.602176634e-19 J × 6.02214076e23 / 1000.
        near(md("1 eV"), 96.485_332_123_310_0, 1e-13);
        near(md("25.7 meV"), 0.0257 * 96.485_332_123_310_0, 1e-13);
        // CODATA 2018: E_h N_A = 2625.499639 kJ/mol; a0 = 0.529177210903 A.
        near(md("1 Ha"), 2_625.499_639, 1e-9);
        near(md("1 Ry"), 2_625.499_639 / 2.0, 1e-9);
        near(md("1 bohr"), 0.052_917_721_090_3, 1e-15);
        // 1 bar = 1e5 J/m³ = 1e5 × 6.02214076e20 kJ/mol / 1e27 nm³.
        near(md("1 bar"), 0.060_221_407_6, 1e-15);
        near(md("1 atm"), 0.060_221_407_6 * 1.01325, 1e-15);
        near(md("1 GPa"), 602.214_076, 1e-15);
        near(md("1 Mbar"), 60_221.407_6, 1e-15);
        near(md("1 kPa"), 0.000_602_214_076, 1e-15);
        // 1 pN = 1e-12 J/m = 1e-12 × 6.02214076e20 / 1e9 nm.
        near(md("1 pN"), 0.602_214_076, 1e-15);
        near(md("1 nN"), 602.214_076, 1e-15);
        // One volt times one elementary charge is one electronvolt.
        near(md("1 V*e"), md("1 eV"), 1e-15);
        // 1 D = 3.33564e-30 C m = 0.2081943 e Å.
        near(md("1 D"), 0.020_819_43, 1e-6);
        near(md("1 C"), 1.0 / 1.602_176_634e-19, 1e-15);
        // Water: 1 g/cm³ = 6.02214076e23 u / 1e21 nm³.
        near(md("1 g/cm^3"), 602.214_076, 1e-15);
        near(md("1 kg/m³"), 0.602_214_076, 1e-15);
        near(md("180 deg"), std::f64::consts::PI, 1e-15);
        near(md("90°"), std::f64::consts::FRAC_PI_2, 1e-15);
        assert_eq!(md("2 rad"), 2.0);
        assert_eq!(md("1 THz"), 1.0);
        assert_eq!(md("100 cm^-1"), 1e-5);
        near(md("0.15 mol/L"), 0.15 * 0.602_214_076, 1e-14);
    }

    #[test]
    fn spellings_of_numbers_and_expressions() {
        assert_eq!(md("1_000 K"), 1000.0);
        assert_eq!(md("  -0.8e"), -0.8);
        assert_eq!(dimension("-0.8e"), Dimension::CHARGE);
        assert_eq!(md("1e3 K"), 1000.0);
        assert_eq!(md("1e"), 1.0);
        assert_eq!(md("2e-3nm"), 0.002);
        assert_eq!(md(".5 nm"), 0.5);
        assert_eq!(md("−5. K"), -5.0);
        assert_eq!(dimension("1 kJ/(mol nm^2)"), Dimension::ENERGY.per(Dimension::LENGTH.powi(2)));
        assert_eq!(md("1 kJ/(mol nm^2)"), 1.0);
        assert_eq!(dimension("5 /ps"), Dimension::TIME.powi(-1));
        assert_eq!(dimension("5 1/ps"), Dimension::TIME.powi(-1));
        assert_eq!(dimension("5 ps⁻¹"), Dimension::TIME.powi(-1));
        assert_eq!(dimension("5 ps^(-1)"), Dimension::TIME.powi(-1));
        assert_eq!(dimension("1 u nm / ps"), Dimension::MASS.times(Dimension::VELOCITY));
        assert_eq!(dimension("1 e·nm"), Dimension::CHARGE.times(Dimension::LENGTH));
        assert_eq!(dimension("0.9"), Dimension::NONE);
    }

    #[test]
    fn errors_point_and_advise() {
        let did = |s: &str| Some(format!("did you mean `{s}`?"));
        assert_eq!(error("1 kcl/mol", UnitSystem::Md), ("unknown unit `kcl`".into(), 2..5, did("kcal")));
        assert_eq!(error("5 Nm", UnitSystem::Md).2, did("nm"));
        assert_eq!(error("5 Kelvin", UnitSystem::Md).2, did("kelvin"));
        assert_eq!(error("5 angstroms", UnitSystem::Md).2, did("angstrom"));
        assert_eq!(error("300 k", UnitSystem::Md).2, did("K"));
        assert_eq!(error("1 xyzzy", UnitSystem::Md).2, Some("`md explain units` lists the units".into()));
        let (message, span, help) = error("0.2 kcal", UnitSystem::Md);
        assert_eq!((message.as_str(), span), ("`kcal` without `/mol`", 4..8));
        assert!(help.unwrap().contains("`kcal/mol`"));
        assert_eq!(error("0,5 fs", UnitSystem::Md).0, "a decimal comma");
        assert_eq!(error("nm", UnitSystem::Md).0, "expected a number, found `nm`");
        assert_eq!(error("nan", UnitSystem::Md).0, "`nan` is not a finite number");
        assert_eq!(error("-inf K", UnitSystem::Md).0, "`-inf` is not a finite number");
        assert_eq!(error("1e999 K", UnitSystem::Md).0, "the number is too large");
        assert_eq!(error("1e-400 K", UnitSystem::Md).0, "the number is too small to be told from zero");
        assert_eq!(error("", UnitSystem::Md).0, "an empty text where a number was expected");
        assert_eq!(error("1 nm2", UnitSystem::Md).1, 4..5);
        assert_eq!(error("1 nm^", UnitSystem::Md).0, "expected a whole number as exponent");
        assert_eq!(error("1 nm^0.5", UnitSystem::Md).0, "expected a whole number as exponent");
        assert_eq!(error("1 nm^99", UnitSystem::Md).0, "an absurdly large exponent");
        assert_eq!(error("1 (nm", UnitSystem::Md).0, "this `(` is never closed");
        assert_eq!(error("1 kJ/mol nm", UnitSystem::Md).1, 9..10);
        assert_eq!(error("1 nm/", UnitSystem::Md).0, "expected a unit, found the end");
        assert_eq!(error("1 nm)", UnitSystem::Md).0, "unexpected `)`");
    }

    #[test]
    fn reduced_units_stay_reduced() {
        let lj = |text| parse_quantity(text, UnitSystem::Lj);
        assert_eq!(lj("2.5").unwrap(), (2.5, Dimension::NONE));
        assert_eq!(lj("2.5 sigma").unwrap(), (2.5, Dimension::LENGTH));
        assert_eq!(lj("2.5 ε/σ²").unwrap(), (2.5, Dimension::ENERGY.per(Dimension::LENGTH.powi(2))));
        assert_eq!(lj("0.005 tau").unwrap(), (0.005, Dimension::TIME));
        assert_eq!(lj("1 m").unwrap(), (1.0, Dimension::MASS));
        assert_eq!(lj("0.7 epsilon/kB").unwrap(), (0.7, Dimension::TEMPERATURE));
        assert_eq!(
            error("2.5 nm", UnitSystem::Lj).0,
            "the physical unit `nm` in a file with `units = \"lj\"`"
        );
        assert_eq!(error("2.5 sgma", UnitSystem::Lj).2, Some("did you mean `sigma`?".into()));
        assert_eq!(
            error("2.5 sigma", UnitSystem::Md).0,
            "the reduced unit `sigma` in a file with physical units"
        );
    }

    #[test]
    fn bare_numbers_are_in_the_declared_units() {
        let read = |text, d, s| read_quantity(text, d, s).unwrap();
        assert_eq!(read("9", Dimension::LENGTH, UnitSystem::Real), 0.9);
        assert_eq!(read("0.9", Dimension::LENGTH, UnitSystem::Md), 0.9);
        assert_eq!(read("2", Dimension::TIME, UnitSystem::Real), 0.002);
        assert_eq!(read("2", Dimension::TIME, UnitSystem::Metal), 2.0);
        assert_eq!(read("1", Dimension::ENERGY.per(Dimension::LENGTH.powi(2)), UnitSystem::Real), 418.4);
        near(read("1", Dimension::PRESSURE, UnitSystem::Real), 0.060_221_407_6 * 1.01325, 1e-15);
        near(read("1", Dimension::PRESSURE, UnitSystem::Metal), 0.060_221_407_6, 1e-15);
        near(read("1", Dimension::ENERGY, UnitSystem::Metal), 96.485_332_123_310_0, 1e-13);
        assert_eq!(read("1", Dimension::VELOCITY, UnitSystem::Real), 100.0);
        assert_eq!(read("9 A", Dimension::LENGTH, UnitSystem::Metal), 0.9);
        let e = read_quantity("9 kJ/mol", Dimension::LENGTH, UnitSystem::Md).unwrap_err();
        assert_eq!(e.message, "expected a length (such as \"9 A\"), found an energy (kJ/mol)");
        assert_eq!(e.span, 2..8);
        for (_, system) in UnitSystem::ALL {
            for d in sample_dimensions() {
                near(from_internal(to_internal(3.7, d, system), d, system), 3.7, 1e-14);
            }
        }
    }

    fn sample_dimensions() -> Vec<Dimension> {
        let energy = Dimension::ENERGY;
        let length = Dimension::LENGTH;
        vec![
            Dimension::NONE,
            length,
            Dimension::MASS,
            Dimension::TIME,
            Dimension::CHARGE,
            Dimension::TEMPERATURE,
            energy,
            Dimension::FORCE,
            Dimension::PRESSURE,
            Dimension::VELOCITY,
            energy.per(length.powi(2)),
            energy.times(length.powi(6)),
            energy.times(length).per(Dimension::CHARGE.powi(2)),
            energy.per(Dimension::TEMPERATURE),
            energy.powi(-1),
            energy.powi(2),
            Dimension::TIME.powi(-1),
            Dimension::PRESSURE.powi(-1),
            Dimension::TEMPERATURE.powi(-2),
            Dimension::MASS.per(length.powi(3)),
            Dimension::MASS.per(length.times(Dimension::TIME)),
        ]
    }

    #[test]
    fn symbols_read_back() {
        let spring = Dimension::ENERGY.per(Dimension::LENGTH.powi(2));
        assert_eq!(symbol(spring, UnitSystem::Md), "kJ/mol/nm²");
        assert_eq!(symbol(spring, UnitSystem::Lj), "ε/σ²");
        assert_eq!(symbol(Dimension::TEMPERATURE, UnitSystem::Lj), "ε/kB");
        assert_eq!(symbol(Dimension::PRESSURE, UnitSystem::Real), "atm");
        assert_eq!(symbol(Dimension::NONE, UnitSystem::Md), "");
        assert_eq!(describe(spring), "energy/length²");
        assert_eq!(describe(Dimension::LENGTH), "a length");
        for (_, system) in UnitSystem::ALL {
            for d in sample_dimensions() {
                let (size, found) = parse_quantity(&format!("1 {}", symbol(d, system)), system).unwrap();
                assert_eq!(found, d, "{}", symbol(d, system));
                near(size, to_internal(1.0, d, system), 1e-14);
            }
        }
        for d in sample_dimensions() {
            assert_eq!(parse_quantity(&example(d), UnitSystem::Md).unwrap().1, d, "{}", example(d));
        }
    }

    #[test]
    fn every_listed_unit_is_read() {
        for unit in UNITS {
            for name in unit.names {
                let text = format!("1 {name}");
                let read = parse_quantity(&text, UnitSystem::Md);
                if *name == "cal" {
                    assert!(read.is_err());
                } else {
                    assert_eq!(read.unwrap().1, unit.dimension, "{name}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            for (_, system) in UnitSystem::ALL {
                let _ = read_quantity(&text, Dimension::LENGTH, system);
                if let Err(e) = parse_quantity(&text, system) {
                    prop_assert!(text.get(e.span.clone()).is_some(), "{:?}", e);
                }
            }
        }

        #[test]
        fn nearly_right_text_is_read_or_refused(text in "[-+0-9._eE]{1,6}[ kJmolnA/^*²³⁻·()°µe0-9.-]{0,14}") {
            for (_, system) in UnitSystem::ALL {
                match parse_quantity(&text, system) {
                    Ok((value, _)) => prop_assert!(value.is_finite()),
                    Err(e) => prop_assert!(text.get(e.span.clone()).is_some(), "{:?}", e),
                }
            }
        }

        #[test]
        fn formatted_quantities_read_back(bits in any::<u64>(), which in 0usize..21) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            let d = sample_dimensions()[which];
            for (_, system) in UnitSystem::ALL {
                let text = format_quantity(value, d, system);
                let (back, found) = parse_quantity(&text, system).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
                prop_assert_eq!(back.to_bits(), value.to_bits(), "{}", text);
                prop_assert_eq!(found, d);
            }
        }
    }
}
