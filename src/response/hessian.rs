//! The Hessian as a matrix: whole, or its blocks that are not zero.
//!
//! Products with unit vectors give it column by column. Columns of atoms that no third atom is coupled with both of can be
//! had from one product, as their entries do not meet (A. R. Curtis, M. J. D. Powell and J. K. Reid, J. Inst. Maths Applics
//! 13, 117 (1974)): the sparse matrix takes as many products as there are colours, whatever the number of atoms.

use super::{Point, eigen};
use crate::forces::ForceError;
use nalgebra::DMatrix;

/// A symmetric matrix of 3 × 3 blocks, of which only those of coupled atoms are kept. kJ/mol/nm².
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseHessian {
    /// Where the row of each atom starts among the blocks, and where the last one ends.
    pub starts: Vec<usize>,
    /// For each block the other atom, ascending within a row.
    pub atoms: Vec<u32>,
    /// ∂²E/∂xᵢ∂xⱼ: rows are components of the row's atom.
    pub blocks: Vec<[[f64; 3]; 3]>,
    /// How many products it took.
    pub products: usize,
}

impl SparseHessian {
    /// H v.
    pub fn product(&self, v: &[[f64; 3]]) -> Vec<[f64; 3]> {
        let row = |i: usize| {
            let mut sum = [0.0; 3];
            for k in self.starts[i]..self.starts[i + 1] {
                let x = v[self.atoms[k] as usize];
                for (sum, b) in sum.iter_mut().zip(&self.blocks[k]) {
                    *sum += b[0] * x[0] + b[1] * x[1] + b[2] * x[2];
                }
            }
            sum
        };
        (0..self.starts.len() - 1).map(row).collect()
    }
}

impl Point<'_> {
    /// The whole matrix, 3 N × 3 N, by as many products.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn hessian(&mut self) -> Result<DMatrix<f64>, ForceError> {
        eigen::matrix(3 * self.atoms(), |v| self.product(v))
    }

    /// The blocks of coupled atoms, by three products a colour.
    ///
    /// # Errors
    /// Those of the evaluator.
    pub fn sparse_hessian(&mut self) -> Result<SparseHessian, ForceError> {
        let n = self.atoms();
        let pattern = self.evaluator.coupled_atoms(&self.state.cell, &self.state.positions)?;
        // two atoms have one colour if no row has both
        let mut colors = vec![usize::MAX; n];
        let mut count = 0;
        let mut taken: Vec<usize> = Vec::new();
        for j in 0..n {
            for &i in &pattern[j] {
                for &k in &pattern[i as usize] {
                    if let Some(taken) = taken.get_mut(colors[k as usize]) {
                        *taken = j;
                    }
                }
            }
            let free = taken.iter().position(|&by| by != j);
            colors[j] = free.unwrap_or_else(|| {
                taken.push(usize::MAX);
                count += 1;
                count - 1
            });
        }
        let mut starts = vec![0];
        for row in &pattern {
            starts.push(starts[starts.len() - 1] + row.len());
        }
        let atoms: Vec<u32> = pattern.iter().flatten().copied().collect();
        let mut blocks = vec![[[0.0; 3]; 3]; atoms.len()];
        let mut v = vec![0.0; 3 * n];
        for color in 0..count {
            for axis in 0..3 {
                v.fill(0.0);
                (0..n).filter(|&j| colors[j] == color).for_each(|j| v[3 * j + axis] = 1.0);
                let product = self.product(&v)?;
                for i in 0..n {
                    for k in starts[i]..starts[i + 1] {
                        if colors[atoms[k] as usize] == color {
                            (0..3).for_each(|c| blocks[k][c][axis] = product[3 * i + c]);
                        }
                    }
                }
            }
        }
        Ok(SparseHessian { starts, atoms, blocks, products: 3 * count })
    }
}
