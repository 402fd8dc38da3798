//! The numbers a user wrote for a term, and how an energy's parameters follow from them.

use crate::autodiff::lanes::Lanes;
use potentials::{Energy, Record, Scalar};

/// How one field of a `Params` record follows from the user's numbers, given by their indices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Slot {
    /// One of the numbers itself.
    Value(u32),
    /// A number nobody wrote (a default): no derivative is taken with respect to it.
    Constant(f64),
    /// (a + b) / 2
    Arithmetic(u32, u32),
    /// √(a b)
    Geometric(u32, u32),
    /// ((a⁶ + b⁶) / 2)^⅙: the size in Waldman and Hagler's mixing.
    SixthPower(u32, u32),
    /// 2 √(εa εb) σa³ σb³ / (σa⁶ + σb⁶): the depth in Waldman and Hagler's mixing. Order: εa, εb, σa, σb.
    SixthPowerDepth(u32, u32, u32, u32),
}

impl Slot {
    fn value<T: Scalar>(self, theta: &[T]) -> T {
        let at = |k: u32| theta[k as usize];
        match self {
            Slot::Value(k) => at(k),
            Slot::Constant(x) => T::constant(x),
            Slot::Arithmetic(a, b) => (at(a) + at(b)) * 0.5,
            Slot::Geometric(a, b) => root(at(a) * at(b)),
            Slot::SixthPower(a, b) => ((at(a).powi(6) + at(b).powi(6)) * 0.5).powf(1.0 / 6.0),
            Slot::SixthPowerDepth(ea, eb, sa, sb) => {
                let (sa, sb) = (at(sa), at(sb));
                root(at(ea) * at(eb)) * (sa * sb).powi(3) * 2.0 / (sa.powi(6) + sb.powi(6))
            }
        }
    }
}

/// √x, and 0 with derivative 0 at 0: a type of depth zero stays without interaction.
fn root<T: Scalar>(x: T) -> T {
    let (zero, one) = (T::constant(0.0), T::constant(1.0));
    let positive = zero.lt(x);
    T::select(positive, T::select(positive, x, one).sqrt(), zero)
}

/// The user's numbers of one term, and the rows of parameters (one for each pair of types, kind of bond …) made
/// of them. Everything downstream is differentiable with respect to the numbers as written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterTable {
    values: Vec<f64>,
    labels: Vec<String>,
    slots: Vec<Slot>,
    width: usize,
    rows: usize,
}

impl ParameterTable {
    /// A table without rows for records of `width` fields.
    pub fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }
    /// A table of rows that are numbers of their own, labelled `row.parameter`.
    pub fn of_rows<const N: usize>(names: [&str; N], rows: &[(&str, [f64; N])]) -> Self {
        let mut table = Self::new(N);
        for (row, numbers) in rows {
            let slots: Vec<_> = names
                .iter()
                .zip(numbers)
                .map(|(p, &x)| Slot::Value(table.number(format!("{row}.{p}"), x)))
                .collect();
            table.row(&slots);
        }
        table
    }
    /// Adds a number of the user's and returns its index.
    pub fn number(&mut self, label: impl Into<String>, value: f64) -> u32 {
        self.values.push(value);
        self.labels.push(label.into());
        self.values.len() as u32 - 1
    }
    /// Adds a row of parameters and returns its index.
    pub fn row(&mut self, slots: &[Slot]) -> usize {
        assert_eq!(slots.len(), self.width, "a row has one slot a parameter");
        self.slots.extend_from_slice(slots);
        self.rows += 1;
        self.rows - 1
    }
    /// How many rows. (A table of records without fields has one that nobody added.)
    pub fn rows(&self) -> usize {
        if self.width == 0 { self.rows.max(1) } else { self.rows }
    }
    /// How many fields a row has.
    pub fn width(&self) -> usize {
        self.width
    }
    /// A field of a row.
    pub fn field(&self, row: usize, field: usize) -> f64 {
        self.slots[row * self.width + field].value(&self.values)
    }
    /// The numbers as written.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
    /// Sets the numbers.
    pub fn set_values(&mut self, values: &[f64]) {
        self.values.copy_from_slice(values);
    }
    /// Their names.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }
    /// Row number `row` as a record, from the numbers `theta`.
    pub fn params<T: Scalar, R: Record<T>>(&self, theta: &[T], row: usize) -> R {
        debug_assert_eq!(R::LEN, self.width);
        R::from_fn(|k| self.slots[row * self.width + k].value(theta))
    }
    /// All rows, prepared for the formula of `E`.
    pub fn prepared<E: Energy, T: Scalar>(&self, theta: &[T]) -> Vec<E::Prepared<T>> {
        let mut rows = Vec::with_capacity(self.rows());
        for row in 0..self.rows() {
            rows.push(E::prepare(&self.params::<T, E::Params<T>>(theta, row)));
        }
        rows
    }
}

/// The prepared parameters of a term in plain numbers, row after row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreparedTable {
    values: Vec<f64>,
    width: usize,
    count: usize,
}

impl PreparedTable {
    /// The rows of a parameter table, prepared for the formula of `E`.
    pub fn of<E: Energy>(parameters: &ParameterTable) -> Self {
        let width = <E::Prepared<f64> as Record<f64>>::LEN;
        let mut values = Vec::new();
        for row in parameters.prepared::<E, f64>(parameters.values()) {
            for k in 0..width {
                values.push(row.field(k));
            }
        }
        Self { values, width, count: parameters.rows() }
    }
    /// How many fields a row has.
    pub fn width(&self) -> usize {
        self.width
    }
    /// A field of a row; 0 in a table without rows.
    pub fn field(&self, row: usize, field: usize) -> f64 {
        self.values.get(row * self.width + field).copied().unwrap_or(0.0)
    }
    /// All fields, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
    /// One row.
    #[inline(always)]
    pub fn row<R: Record<f64>>(&self, row: usize) -> R {
        R::from_fn(|m| self.values[row * self.width + m])
    }
    /// All rows, in the numbers that `f` makes.
    pub fn rows<T, R: Record<T>>(&self, f: impl Fn(f64) -> T) -> Vec<R> {
        let mut rows = Vec::with_capacity(self.count);
        for row in 0..self.count {
            rows.push(R::from_fn(|m| f(self.values[row * self.width + m])));
        }
        rows
    }
    /// A row a lane: lane k has row `row(k)`.
    #[inline(always)]
    pub fn gather<V: Lanes, R: Record<V::Parameter>>(&self, row: impl Fn(usize) -> usize) -> R {
        R::from_fn(
            #[inline(always)]
            |m| {
                V::gather(
                    #[inline(always)]
                    |k| self.values[row(k) * self.width + m],
                )
                .parameter()
            },
        )
    }
}
