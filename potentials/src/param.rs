//! What a parameter is: its name, dimension, range and meaning.

/// Exponents of the base quantities: length, mass, time, charge and temperature.
///
/// Amount of substance and angle are not tracked: an energy "per mole" is the energy of one particle
/// (as everywhere in this field), and a radian is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// Exponent of length.
    pub length: i8,
    /// Exponent of mass.
    pub mass: i8,
    /// Exponent of time.
    pub time: i8,
    /// Exponent of charge.
    pub charge: i8,
    /// Exponent of temperature.
    pub temperature: i8,
}

impl Dimension {
    /// A plain number (also an angle).
    pub const NONE: Self = Self::base(0, 0, 0, 0, 0);
    /// Length.
    pub const LENGTH: Self = Self::base(1, 0, 0, 0, 0);
    /// Mass.
    pub const MASS: Self = Self::base(0, 1, 0, 0, 0);
    /// Time.
    pub const TIME: Self = Self::base(0, 0, 1, 0, 0);
    /// Electric charge.
    pub const CHARGE: Self = Self::base(0, 0, 0, 1, 0);
    /// Temperature.
    pub const TEMPERATURE: Self = Self::base(0, 0, 0, 0, 1);
    /// Energy, mass × length² / time².
    pub const ENERGY: Self = Self::base(2, 1, -2, 0, 0);
    /// Force, energy / length.
    pub const FORCE: Self = Self::ENERGY.per(Self::LENGTH);
    /// Pressure, energy / length³.
    pub const PRESSURE: Self = Self::ENERGY.per(Self::LENGTH.powi(3));
    /// Inverse length.
    pub const INVERSE_LENGTH: Self = Self::LENGTH.powi(-1);
    /// Stiffness, energy / length².
    pub const STIFFNESS: Self = Self::ENERGY.per(Self::LENGTH.powi(2));
    /// Velocity, length / time.
    pub const VELOCITY: Self = Self::LENGTH.per(Self::TIME);

    /// The dimension with these exponents.
    pub const fn base(length: i8, mass: i8, time: i8, charge: i8, temperature: i8) -> Self {
        Self { length, mass, time, charge, temperature }
    }

    /// The product of two dimensions.
    pub const fn times(self, o: Self) -> Self {
        Self::base(
            self.length + o.length,
            self.mass + o.mass,
            self.time + o.time,
            self.charge + o.charge,
            self.temperature + o.temperature,
        )
    }

    /// The quotient of two dimensions.
    pub const fn per(self, o: Self) -> Self {
        self.times(o.powi(-1))
    }

    /// An integer power.
    pub const fn powi(self, n: i8) -> Self {
        Self::base(self.length * n, self.mass * n, self.time * n, self.charge * n, self.temperature * n)
    }
}

/// The values a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any finite number.
    Any,
    /// Greater than zero.
    Positive,
    /// Zero or greater.
    NonNegative,
    /// Between two numbers, both allowed.
    Within(f64, f64),
    /// A whole number between two, both allowed.
    Integer(i32, i32),
}

impl Range {
    /// Whether `x` is allowed.
    pub fn contains(self, x: f64) -> bool {
        x.is_finite()
            && match self {
                Range::Any => true,
                Range::Positive => x > 0.0,
                Range::NonNegative => x >= 0.0,
                Range::Within(a, b) => a <= x && x <= b,
                Range::Integer(a, b) => x.fract() == 0.0 && f64::from(a) <= x && x <= f64::from(b),
            }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Range::Any => write!(f, "any number"),
            Range::Positive => write!(f, "> 0"),
            Range::NonNegative => write!(f, "≥ 0"),
            Range::Within(a, b) => write!(f, "from {a} to {b}"),
            Range::Integer(a, b) if *b == i32::MAX => write!(f, "a whole number ≥ {a}"),
            Range::Integer(a, b) => write!(f, "a whole number from {a} to {b}"),
        }
    }
}

/// How the parameter of a pair of unlike atoms follows from those of the two types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// No rule: unlike pairs are given explicitly.
    Explicit,
    /// A length (σ): arithmetic mean in Lorentz–Berthelot mixing, geometric in geometric mixing.
    Size,
    /// A depth (ε): geometric mean.
    Depth,
}

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// The user writes it (for each type, pair of types, bond …).
    Input,
    /// The user may write it; otherwise this value, in internal units.
    Default(f64),
    /// The term's own cut-off distance.
    Cutoff,
}

/// One parameter of an energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// The key in the input.
    pub name: &'static str,
    /// Its dimension, checked when the input is read.
    pub dimension: Dimension,
    /// What it may be.
    pub range: Range,
    /// One line on what it means.
    pub doc: &'static str,
    /// How unlike types combine.
    pub mixing: Mixing,
    /// Who gives the value.
    pub source: Source,
    /// A value as it may well be, in nm, ps, u and e: see [`Param::sample`].
    pub example: Option<f64>,
}

impl Param {
    /// A parameter the user writes, of any finite value, without a mixing rule.
    pub const fn new(name: &'static str, dimension: Dimension, doc: &'static str) -> Self {
        Self {
            name,
            dimension,
            range: Range::Any,
            doc,
            mixing: Mixing::Explicit,
            source: Source::Input,
            example: None,
        }
    }
    /// Restricts the range.
    pub const fn range(mut self, range: Range) -> Self {
        self.range = range;
        self
    }
    /// Gives a mixing rule.
    pub const fn mixing(mut self, mixing: Mixing) -> Self {
        self.mixing = mixing;
        self
    }
    /// Makes the parameter optional.
    pub const fn default(mut self, value: f64) -> Self {
        self.source = Source::Default(value);
        self
    }
    /// The value is the term's cut-off distance.
    pub const fn cutoff(mut self) -> Self {
        self.source = Source::Cutoff;
        self
    }
    /// Gives a value as it may well be, in nm, ps, u and e: for examples and tests.
    pub const fn example(mut self, value: f64) -> Self {
        self.example = Some(value);
        self
    }

    /// A value to try: the example; without one, what dimension and range suggest (lengths of 0.3 nm, energies of
    /// 2 kJ/mol).
    pub fn sample(&self) -> f64 {
        if let Some(x) = self.example {
            return x;
        }
        // an energy is mass × length²/time²
        let d = self.dimension;
        let x = 2f64.powi(d.mass.into()) * 0.3f64.powi(i32::from(d.length) - 2 * i32::from(d.mass));
        match self.range {
            Range::Within(a, b) if a > f64::MIN && b < f64::MAX => 0.5 * (a + b),
            Range::Integer(a, b) => f64::from(1.clamp(a, b)),
            _ => x,
        }
    }
}

/// What the reader of `md explain NAME` sees: an energy's formula, its parameters and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The key in the input, in kebab-case.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// The formula in plain text, parameters by their keys.
    pub formula: &'static str,
    /// Author, title or journal, year, equation.
    pub source: &'static str,
    /// The parameters in the order of the `Params` record.
    pub params: &'static [Param],
}
