//! Reproducible random numbers, for the tests of both crates.
#![allow(dead_code)]

/// Reproducible random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Numbers that belong to a text.
    pub fn of(text: &str) -> Self {
        Random(text.bytes().fold(7, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)))
    }
    pub fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn within(&mut self, a: f64, b: f64) -> f64 {
        a + (b - a) * self.unit()
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }
    pub fn vector(&mut self, size: f64) -> [f64; 3] {
        [0; 3].map(|_| self.within(-size, size))
    }
    pub fn direction(&mut self) -> [f64; 3] {
        loop {
            let v = self.vector(1.0);
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (0.1..1.0).contains(&norm) {
                return v.map(|x| x / norm);
            }
        }
    }
    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            order.swap(k, self.below(k + 1));
        }
        order
    }
}
