//! What the elementary functions of lanes cost, a number, beside those of the standard library.
//!
//! `cargo bench --bench lanes`

use md::autodiff::lanes::{Element, Isa, Kernel, Lanes};
use std::hint::black_box;
use std::time::Instant;

/// Numbers that stay in the nearest cache, and what is made of them.
struct Numbers<E> {
    x: Vec<E>,
    y: Vec<E>,
}

trait Operation: Copy {
    const NAME: &'static str;
    /// What arguments lie between.
    const RANGE: [f64; 2];
    fn lanes<V: Lanes>(self, x: V) -> V;
    /// The same with the standard library.
    fn plain(self, x: f64) -> f64;
}

macro_rules! operations {
    ($($T:ident $name:literal $range:expr, |$x:ident| $lanes:expr, $plain:expr;)*) => {
        $(
            #[derive(Clone, Copy)]
            struct $T;
            impl Operation for $T {
                const NAME: &'static str = $name;
                const RANGE: [f64; 2] = $range;
                #[inline(always)]
                fn lanes<V: Lanes>(self, $x: V) -> V { $lanes }
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
    Add "x + 1" [0.0, 1.0], |x| x + 1.0, x + 1.0;
    Recip "1/x" [0.5, 2.0], |x| x.recip(), 1.0 / x;
    Sqrt "√x" [0.5, 2.0], |x| x.sqrt(), x.sqrt();
    RootRecip "1/(√x)" [0.5, 2.0], |x| x.sqrt().recip(), 1.0 / x.sqrt();
    Rsqrt "rsqrt" [0.5, 2.0], |x| x.rsqrt(), 1.0 / x.sqrt();
    Exp "exp" [-10.0, 1.0], |x| x.exp(), x.exp();
    Ln "ln" [0.1, 10.0], |x| x.ln(), x.ln();
    Sin "sin" [-6.0, 6.0], |x| x.sin(), x.sin();
    Cos "cos" [-6.0, 6.0], |x| x.cos(), x.cos();
    SinCos "sin + cos" [-6.0, 6.0], |x| x.sin() + x.cos(), x.sin() + x.cos();
    Tanh "tanh" [-3.0, 3.0], |x| x.tanh(), x.tanh();
    Acos "acos" [-1.0, 1.0], |x| x.acos(), x.acos();
    Atan2 "atan2" [-2.0, 2.0], |x| x.atan2(1.0 - x), x.atan2(1.0 - x);
    Erfc "erfc" [0.0, 4.0], |x| x.erfc(), potentials::special::erfc(x);
    Powf "powf" [0.5, 2.0], |x| x.powf(-2.7), x.powf(-2.7);
}

/// y = f(x) for all numbers.
struct Map<'a, O> {
    operation: O,
    memory: &'a mut Memory,
}
struct Memory {
    double: Numbers<f64>,
    single: Numbers<f32>,
}
const COUNT: usize = 1024;

impl<O: Operation> Kernel for Map<'_, O> {
    type Output = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        // (`V::Element` is one of these two)
        let single = std::mem::size_of::<V::Element>() == 4;
        let (x, y): (*const V::Element, *mut V::Element) = if single {
            (self.memory.single.x.as_ptr().cast(), self.memory.single.y.as_mut_ptr().cast())
        } else {
            (self.memory.double.x.as_ptr().cast(), self.memory.double.y.as_mut_ptr().cast())
        };
        for k in (0..COUNT).step_by(V::WIDTH) {
            // SAFETY: there are `COUNT` numbers, a multiple of every width
            unsafe { self.operation.lanes(V::load(x.add(k))).store(y.add(k)) };
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
    let [low, high] = O::RANGE;
    let x: Vec<f64> = (0..COUNT).map(|k| low + (high - low) * (0.618_033_988 * k as f64).fract()).collect();
    let single = x.iter().map(|&x| f32::nearest(x)).collect();
    let mut memory = Memory {
        double: Numbers { x, y: vec![0.0; COUNT] },
        single: Numbers { x: single, y: vec![0.0; COUNT] },
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
