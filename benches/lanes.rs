//! What the elementary functions of lanes cost, a number, beside those of the standard library.
//!
//! `cargo bench --bench lanes`

// Lanes read and write memory without checks, as in kernels.
#![allow(unsafe_code)]

use md::autodiff::lanes::{Element, Isa, Kernel, Lanes};
use std::hint::black_box;
use std::time::Instant;

/// Numbers that stay in the nearest cache, and what is made of them.
struct Numbers<E> {
    x: Vec<E>,
    y: Vec<E>,
    rows: Vec<[E; 4]>,
}
impl<E: Element> Numbers<E> {
    fn between([low, high]: [f64; 2]) -> Self {
        let fraction = |k: usize| (0.618_033_988 * k as f64).fract();
        Numbers {
            x: (0..COUNT).map(|k| E::nearest(low + (high - low) * fraction(k))).collect(),
            y: vec![E::default(); COUNT],
            rows: (0..COUNT).map(|k| std::array::from_fn(|c| E::nearest(fraction(4 * k + c)))).collect(),
        }
    }
}
struct Memory {
    double: Numbers<f64>,
    single: Numbers<f32>,
    slots: Vec<u32>,
    index: Vec<u16>,
    found: Vec<u32>,
}
const COUNT: usize = 1024;

/// Where in memory an operation is.
struct Place<V: Lanes> {
    rows: *const [V::Element; 4],
    table: *const V::Element,
    slots: *const u32,
    index: *const u16,
    found: *mut u32,
}

trait Operation: Copy {
    const NAME: &'static str;
    /// What arguments lie between.
    const RANGE: [f64; 2];
    /// # Safety
    /// The place must be good.
    unsafe fn lanes<V: Lanes>(self, x: V, place: Place<V>) -> V;
    /// The same with the standard library.
    fn plain(self, x: f64) -> f64;
}

macro_rules! operations {
    ($($T:ident $name:literal $range:expr, |$x:ident, $place:pat_param| $lanes:expr, $plain:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $T;
            impl Operation for $T {
                const NAME: &'static str = $name;
                const RANGE: [f64; 2] = $range;
                #[inline(always)]
                unsafe fn lanes<V: Lanes>(self, $x: V, $place: Place<V>) -> V { $lanes }
                #[inline(always)]
                fn plain(self, $x: f64) -> f64 { $plain }
            }
        )*
        fn every_one() {
            $( report($T); )*
        }
    };
}
operations! {
    Add "x + 1" [0.0, 1.0], |x, _| x + 1.0, x + 1.0;
    Recip "1/x" [0.5, 2.0], |x, _| x.recip(), 1.0 / x;
    Sqrt "√x" [0.5, 2.0], |x, _| x.sqrt(), x.sqrt();
    RootRecip "1/(√x)" [0.5, 2.0], |x, _| x.sqrt().recip(), 1.0 / x.sqrt();
    Rsqrt "rsqrt" [0.5, 2.0], |x, _| x.rsqrt(), 1.0 / x.sqrt();
    Exp "exp" [-10.0, 1.0], |x, _| x.exp(), x.exp();
    Ln "ln" [0.1, 10.0], |x, _| x.ln(), x.ln();
    Sin "sin" [-6.0, 6.0], |x, _| x.sin(), x.sin();
    Cos "cos" [-6.0, 6.0], |x, _| x.cos(), x.cos();
    SinCos "sin + cos" [-6.0, 6.0], |x, _| x.sin() + x.cos(), x.sin() + x.cos();
    Tanh "tanh" [-3.0, 3.0], |x, _| x.tanh(), x.tanh();
    Acos "acos" [-1.0, 1.0], |x, _| x.acos(), x.acos();
    Atan2 "atan2" [-2.0, 2.0], |x, _| x.atan2(1.0 - x), x.atan2(1.0 - x);
    Erfc "erfc" [0.0, 4.0], |x, _| x.erfc(), potentials::special::erfc(x);
    Powf "powf" [0.5, 2.0], |x, _| x.powf(-2.7), x.powf(-2.7);
    // (per lane: four numbers of a row; one of a table; one of a mask)
    Rows "rows" [0.0, 1.0], |x, p| {
        let [a, b, c, d] = unsafe { V::rows(p.rows, p.slots) };
        (a + b) + (c + d) + x
    }, x;
    Lookup "lookup" [0.0, 1.0], |x, p| unsafe { V::lookup(p.table, p.index) } + x, x;
    Compress "compress" [0.0, 1.0], |x, p| {
        unsafe { V::compress(x.lt(V::constant(0.5)), p.slots, p.found) };
        x
    }, x;
}

/// y = f(x) for all numbers.
struct Map<'a, O> {
    operation: O,
    memory: &'a mut Memory,
}

impl<T: Element, O: Operation> Kernel<T> for Map<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes<Element = T>>(self) {
        let Memory { double, single, slots, index, found } = self.memory;
        // (`V::Element` is one of these two)
        let (x, y, rows): (*const V::Element, *mut V::Element, *const [V::Element; 4]) =
            if std::mem::size_of::<V::Element>() == 4 {
                (single.x.as_ptr().cast(), single.y.as_mut_ptr().cast(), single.rows.as_ptr().cast())
            } else {
                (double.x.as_ptr().cast(), double.y.as_mut_ptr().cast(), double.rows.as_ptr().cast())
            };
        for k in (0..COUNT).step_by(V::WIDTH) {
            // SAFETY: there are `COUNT` of everything, a multiple of every width, and all slots and indices are less
            unsafe {
                let (slots, index) = (slots.as_ptr().add(k), index.as_ptr().add(k));
                let place = Place { rows, table: x, slots, index, found: found.as_mut_ptr().add(k) };
                self.operation.lanes(V::load(x.add(k)), place).store(y.add(k));
            }
        }
    }
}

/// Nanoseconds a number of each function, the shortest of many. The functions take turns, so that a machine that is
/// slower for a while is slower for all of them.
fn shortest(functions: &mut [Box<dyn FnMut(&mut Memory) + '_>], memory: &mut Memory) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; functions.len()];
    for _ in 0..150 {
        for (f, best) in functions.iter_mut().zip(&mut best) {
            let start = Instant::now();
            for _ in 0..8 {
                f(black_box(memory));
            }
            *best = best.min(start.elapsed().as_secs_f64() * 1e9 / (8 * COUNT) as f64);
        }
    }
    best
}

fn report<O: Operation>(operation: O) {
    let mut memory = Memory {
        double: Numbers::between(O::RANGE),
        single: Numbers::between(O::RANGE),
        slots: (0..COUNT as u32).map(|k| 389 * k % COUNT as u32 * 4).collect(),
        index: (0..COUNT).map(|k| (389 * k % COUNT) as u16).collect(),
        found: vec![0; COUNT],
    };
    let mut functions: Vec<Box<dyn FnMut(&mut Memory)>> = vec![Box::new(|memory: &mut Memory| {
        for (x, y) in memory.double.x.iter().zip(&mut memory.double.y) {
            *y = operation.plain(*x);
        }
    })];
    for isa in Isa::available() {
        functions.push(Box::new(move |memory| isa.double(Map { operation, memory })));
    }
    for isa in Isa::available() {
        functions.push(Box::new(move |memory| isa.single(Map { operation, memory })));
    }
    let times: Vec<String> =
        shortest(&mut functions, &mut memory).iter().map(|t| format!("{t:>9.3}")).collect();
    println!("{:>9} {}", O::NAME, times.join(""));
}

fn main() {
    let names: Vec<String> = Isa::available().iter().map(|isa| format!("{:>9}", isa.name())).collect();
    let names = names.join("");
    println!("nanoseconds a number: standard library, f64 lanes, f32 lanes");
    println!("{:>9} {:>9}{names}{names}", "", "std");
    every_one();
}
