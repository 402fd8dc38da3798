//! Configurations with energies, forces and stresses, from extended XYZ as other programs write it.

use super::{FitError, Sample, Uncertainties};
use crate::formats::{ColumnData, Format, Frame, FrameUnits, frames};
use crate::system::{Cell, Positions};
use crate::units::{UnitSystem, to_internal};
use potentials::param::Dimension;
use std::io::BufReader;
use std::path::Path;

/// What the numbers in a file are called. A name that is given must be there in every frame; where none is, the usual ones are
/// taken as far as they are there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// Of the energy, in the comment line; usually `energy`.
    pub energy: Option<String>,
    /// Of the forces' column; usually `forces` or `force`.
    pub forces: Option<String>,
    /// Of the stress, positive where it pulls, in the comment line; usually `stress`.
    pub stress: Option<String>,
    /// Of the virial −V σ, in the comment line, where there is no stress; usually `virial`.
    pub virial: Option<String>,
}

/// How a file is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<'a> {
    /// What numbers are called.
    pub names: &'a Names,
    /// Their units: of lengths and energies. (Forces and stresses are energies over lengths and over volumes.)
    pub units: UnitSystem,
    /// Every how manyth frame is taken.
    pub every: usize,
    /// The cell of frames that have none.
    pub cell: &'a Cell,
    /// For each atom of the system the names that it may have.
    pub atoms: &'a [Vec<String>],
    /// Which system that is.
    pub system: usize,
    /// How well numbers are known.
    pub uncertainties: Uncertainties,
    /// How many times each configuration counts.
    pub weight: f64,
    /// The free parameter that is added to energies.
    pub offset: Option<usize>,
}

impl Reading<'_> {
    /// Reads a file.
    ///
    /// # Errors
    /// A file that cannot be read, with its line; frames that do not fit the system or hold no data.
    pub fn file(&self, path: &Path) -> Result<Vec<Sample>, FitError> {
        if Format::from_path(path)? != Format::Xyz {
            let message =
                format!("{}: energies and forces are read from extended XYZ (.xyz)", path.display());
            return Err(FitError::Senseless(message));
        }
        let file = std::fs::File::open(path)
            .map_err(|e| FitError::Senseless(format!("{} cannot be read: {e}", path.display())))?;
        let mut samples = Vec::new();
        // (numbers as they stand: they are converted here, in whatever units)
        for (k, frame) in frames(BufReader::new(file), Format::Xyz, FrameUnits::Reduced).enumerate() {
            let frame = frame.map_err(|e| e.with_path(path))?;
            if k % self.every.max(1) == 0 {
                let place = format!("{}, frame {}", path.display(), k + 1);
                samples.push(self.sample(&frame).map_err(|e| FitError::Senseless(format!("{place}: {e}")))?);
            }
        }
        if samples.is_empty() {
            return Err(FitError::Senseless(format!("{} holds no configurations", path.display())));
        }
        Ok(samples)
    }

    fn sample(&self, frame: &Frame) -> Result<Sample, String> {
        self.same_atoms(frame)?;
        let (length, energy) = (self.unit(Dimension::LENGTH), self.unit(Dimension::ENERGY));
        let points: Vec<[f64; 3]> = frame.positions.iter().map(|r| r.map(|x| x * length)).collect();
        let vectors = frame.cell.map_or(self.cell.vectors(), |c| c.map(|v| v.map(|x| x * length)));
        let given = vectors.map(|v| v != [0.0; 3]);
        let periodic = match (frame.periodic, frame.cell) {
            // (what repeats needs a vector)
            (Some(periodic), _) => std::array::from_fn(|k| periodic[k] && given[k]),
            (None, Some(_)) => given,
            (None, None) => self.cell.periodic(),
        };
        let vectors = given.contains(&true).then_some(vectors);
        let cell = Cell::enclosing(vectors, periodic, &points).map_err(|e| e.to_string())?;
        let positions = Positions::from_cartesian(&cell, &points).map_err(|e| e.to_string())?;
        let known = self.energy(frame)?.map(|e| e * energy);
        let forces = self.forces(frame)?;
        let forces = forces.map(|f| f.iter().map(|f| f.map(|x| x * energy / length)).collect());
        let stress = self.stress(frame, &cell, energy, length)?;
        if known.is_none() && forces.is_none() && stress.is_none() {
            let found: Vec<&str> = frame.info.iter().map(|(k, _)| k.as_str()).collect();
            let columns: Vec<&str> = frame.columns.iter().map(|c| c.name.as_str()).collect();
            return Err(format!(
                "there is no `energy`, `forces` or `stress`; there are {}",
                match [found, columns].concat().join(", ") {
                    none if none.is_empty() => "positions only".to_owned(),
                    names => format!("{names} (the keys of `[[fit.data]]` say what is what)"),
                }
            ));
        }
        Ok(Sample {
            system: self.system,
            cell,
            positions,
            energy: known,
            offset: self.offset.filter(|_| known.is_some()),
            forces,
            stress,
            uncertainties: self.uncertainties,
            weight: self.weight,
        })
    }

    fn unit(&self, dimension: Dimension) -> f64 {
        to_internal(1.0, dimension, self.units)
    }

    fn same_atoms(&self, frame: &Frame) -> Result<(), String> {
        if frame.len() != self.atoms.len() {
            return Err(format!(
                "there are {} atoms, but {} in the input: each input has its own data",
                frame.len(),
                self.atoms.len()
            ));
        }
        for (i, (found, names)) in frame.atoms.iter().zip(self.atoms).enumerate() {
            if !names.contains(&found.name) {
                let expected = names.first().map_or("", String::as_str);
                return Err(format!("atom {} is `{}`, but `{expected}` in the input", i + 1, found.name));
            }
        }
        Ok(())
    }

    fn energy(&self, frame: &Frame) -> Result<Option<f64>, String> {
        let usual = self.names.energy.is_none();
        let name = self.names.energy.as_deref().unwrap_or("energy");
        let found = match name {
            "energy" => frame.energy,
            other => frame.info(other).and_then(|v| v.as_f64()).filter(|x| x.is_finite()),
        };
        if found.is_none() && !usual {
            return Err(format!("there is no number `{name}` in the comment line"));
        }
        Ok(found)
    }

    fn forces(&self, frame: &Frame) -> Result<Option<Vec<[f64; 3]>>, String> {
        let Some(name) = &self.names.forces else { return Ok(frame.forces.clone()) };
        if let ("forces" | "force", Some(forces)) = (name.as_str(), &frame.forces) {
            return Ok(Some(forces.clone()));
        }
        match frame.column(name).map(|c| (&c.data, c.width)) {
            Some((ColumnData::Real(v), 3)) if v.iter().all(|x| x.is_finite()) => {
                Ok(Some(v.as_chunks::<3>().0.to_vec()))
            }
            Some(_) => Err(format!("the column `{name}` is not one of three numbers an atom")),
            None => Err(format!("there is no column `{name}`")),
        }
    }

    fn stress(
        &self,
        frame: &Frame,
        cell: &Cell,
        energy: f64,
        length: f64,
    ) -> Result<Option<[f64; 6]>, String> {
        let tensor = |given: &Option<String>, usual: &str| -> Result<Option<[f64; 6]>, String> {
            let name = given.as_deref().unwrap_or(usual);
            match frame.info(name) {
                Some(value) => symmetric(value.text()).map(Some).map_err(|e| format!("`{name}` {e}")),
                None if given.is_some() => Err(format!("there is no `{name}` in the comment line")),
                None => Ok(None),
            }
        };
        let (stress, virial) = (&self.names.stress, &self.names.virial);
        let found = tensor(stress, "stress")?.map(|s| s.map(|x| x * energy / length.powi(3)));
        // (one of a configuration without a volume says nothing here)
        let Some(volume) = cell.volume().filter(|_| cell.periodic() == [true; 3]) else { return Ok(None) };
        if found.is_some() {
            return Ok(found);
        }
        Ok(tensor(virial, "virial")?.map(|w| w.map(|x| -x * energy / volume)))
    }
}

/// Three by three numbers, or six as xx yy zz yz xz xy (Voigt's order), as xx yy zz xy xz yz.
fn symmetric(text: &str) -> Result<[f64; 6], String> {
    let blank = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}');
    let numbers: Option<Vec<f64>> = text
        .split(blank)
        .filter(|t| !t.is_empty())
        .map(|t| t.parse().ok().filter(|x: &f64| x.is_finite()))
        .collect();
    match numbers.as_deref() {
        Some(&[xx, yy, zz, yz, xz, xy]) => Ok([xx, yy, zz, xy, xz, yz]),
        Some(&[xx, xy, xz, yx, yy, yz, zx, zy, zz]) => {
            let mean = |a: f64, b: f64| 0.5 * (a + b);
            Ok([xx, yy, zz, mean(xy, yx), mean(xz, zx), mean(yz, zy)])
        }
        _ => Err("should be nine numbers, or six in Voigt's order".to_owned()),
    }
}
