//! Formulas that a user writes, such as `D*(1 - exp(-a*(r - r0)))^2`: read once, and evaluated over any number.
//!
//! ```
//! use md::autodiff::Dual;
//! use md::formula::{Formula, Input};
//!
//! let formula = Formula::parse("D*(1 - exp(-a*(r - r0)))^2")?;
//! let program = formula.compile(&[Input::Value("r")], &["D", "a", "r0"])?;
//! // at r = r0 the well is at its bottom, where its curvature is 2 D a²
//! let r = Dual::new(Dual::variable(0.25), Dual::passive(1.0));
//! let e = program.eval::<_, f64>(&[r], &[300.0, 20.0, 0.25]);
//! assert_eq!(e.value.value, 0.0);
//! assert_eq!(e.tangent.value, 0.0);
//! assert_eq!(e.tangent.tangent, 2.0 * 300.0 * 20.0 * 20.0);
//! # Ok::<(), md::formula::FormulaError>(())
//! ```
//!
//! # What can be written
//!
//! | | |
//! |---|---|
//! | numbers | `2`, `0.5`, `.5`, `1e-3` |
//! | names | letters, digits and `_`, not a digit first: `r`, `r0`, `mean_t`, `σ` |
//! | constant | `pi` |
//! | operators | `+ - * /`, and `^` for powers |
//! | functions of x | `sqrt exp ln log log10 sin cos tan asin acos atan sinh cosh tanh abs erf erfc` |
//! | functions of two | `pow(x, y)` (the same as `x^y`), `atan2(y, x)` |
//! | functions of two or more | `min`, `max` |
//! | a choice | `if(x < y, a, b)`, with `<`, `<=`, `>` or `>=` |
//!
//! `^` is right-associative and binds more tightly than a minus before it, as in mathematics: `-x^2` is −(x²), `2^3^2` is 2⁹,
//! and `2^-1` is ½. `log` is the natural logarithm, as `ln` is. Angles are in radians.
//!
//! A whole number as exponent gives a product, half a whole one a product of square roots; any other constant asks for x > 0,
//! and so does an exponent that is no constant: xʸ is e^(y ln x). Of `if` both branches are computed and one is taken, so
//! that the other must not overflow or divide by zero where that would spoil derivatives: write `sqrt(max(x, 1e-9))`, not
//! `if(x > 0, sqrt(x), 0)`. At corners the derivative is that of the branch taken, as [`Scalar`] says. `erf` is
//! right to 10⁻¹⁶ of one, not of its value near zero.
//!
//! # How it is evaluated
//!
//! Formula → [`Graph`] of steps, each of which stands once, constants folded → [`Program`]: what parameters alone decide first,
//! then a flat list of steps. Derivatives come from the number that a program is evaluated over; to have them as steps too
//! ([`Program::with_slopes`]), it is evaluated over dual numbers of the graph, whose rules are those of all other numbers.
//!
//! Reading is our own since errors must point at words, and evaluating since derivatives come from tapes and lanes: `exmex`,
//! which is kept up and takes numbers of any kind, has texts for errors, allocates as it evaluates, and derives by rules of its
//! own.

mod graph;
mod parse;
mod program;

pub use graph::{Graph, Op, Trace, Truth};
pub use parse::{Formula, FormulaError, Name};
pub use program::{Arg, Input, Program, Step};

#[allow(unused_imports)] // (named in the documentation)
use potentials::Scalar;

/// The longest formula, in bytes.
pub const MAX_LENGTH: usize = 8192;
/// The deepest nesting of parentheses, functions, signs and powers.
pub const MAX_DEPTH: usize = 64;
/// The most steps of a formula, with its derivatives.
pub const MAX_STEPS: usize = 4096;
/// The most numbers that a program keeps at a time.
pub const MAX_REGISTERS: usize = 64;
/// The most parameters, and the most numbers made of parameters alone.
pub const MAX_PREPARED: usize = 128;
