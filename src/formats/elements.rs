//! Symbols and masses of the chemical elements, for files that count protons or give momenta.

/// Symbol and standard atomic weight in u (IUPAC 2021, abridged; the mass number of the longest-lived
/// isotope where there is no standard weight), in the order of the atomic numbers from 1.
#[rustfmt::skip]
const ELEMENTS: [(&str, f64); 118] = [
    ("H", 1.008), ("He", 4.0026), ("Li", 6.94), ("Be", 9.0122), ("B", 10.81), ("C", 12.011),
    ("N", 14.007), ("O", 15.999), ("F", 18.998), ("Ne", 20.180), ("Na", 22.990), ("Mg", 24.305),
    ("Al", 26.982), ("Si", 28.085), ("P", 30.974), ("S", 32.06), ("Cl", 35.45), ("Ar", 39.95),
    ("K", 39.098), ("Ca", 40.078), ("Sc", 44.956), ("Ti", 47.867), ("V", 50.942), ("Cr", 51.996),
    ("Mn", 54.938), ("Fe", 55.845), ("Co", 58.933), ("Ni", 58.693), ("Cu", 63.546), ("Zn", 65.38),
    ("Ga", 69.723), ("Ge", 72.630), ("As", 74.922), ("Se", 78.971), ("Br", 79.904), ("Kr", 83.798),
    ("Rb", 85.468), ("Sr", 87.62), ("Y", 88.906), ("Zr", 91.224), ("Nb", 92.906), ("Mo", 95.95),
    ("Tc", 97.0), ("Ru", 101.07), ("Rh", 102.91), ("Pd", 106.42), ("Ag", 107.87), ("Cd", 112.41),
    ("In", 114.82), ("Sn", 118.71), ("Sb", 121.76), ("Te", 127.60), ("I", 126.90), ("Xe", 131.29),
    ("Cs", 132.91), ("Ba", 137.33), ("La", 138.91), ("Ce", 140.12), ("Pr", 140.91), ("Nd", 144.24),
    ("Pm", 145.0), ("Sm", 150.36), ("Eu", 151.96), ("Gd", 157.25), ("Tb", 158.93), ("Dy", 162.50),
    ("Ho", 164.93), ("Er", 167.26), ("Tm", 168.93), ("Yb", 173.05), ("Lu", 174.97), ("Hf", 178.49),
    ("Ta", 180.95), ("W", 183.84), ("Re", 186.21), ("Os", 190.23), ("Ir", 192.22), ("Pt", 195.08),
    ("Au", 196.97), ("Hg", 200.59), ("Tl", 204.38), ("Pb", 207.2), ("Bi", 208.98), ("Po", 209.0),
    ("At", 210.0), ("Rn", 222.0), ("Fr", 223.0), ("Ra", 226.0), ("Ac", 227.0), ("Th", 232.04),
    ("Pa", 231.04), ("U", 238.03), ("Np", 237.0), ("Pu", 244.0), ("Am", 243.0), ("Cm", 247.0),
    ("Bk", 247.0), ("Cf", 251.0), ("Es", 252.0), ("Fm", 257.0), ("Md", 258.0), ("No", 259.0),
    ("Lr", 262.0), ("Rf", 267.0), ("Db", 268.0), ("Sg", 269.0), ("Bh", 270.0), ("Hs", 269.0),
    ("Mt", 277.0), ("Ds", 281.0), ("Rg", 282.0), ("Cn", 285.0), ("Nh", 286.0), ("Fl", 290.0),
    ("Mc", 290.0), ("Lv", 293.0), ("Ts", 294.0), ("Og", 294.0),
];

/// The symbol of the element with atomic number `z`; `X` for 0, a site that is no atom.
pub(super) fn symbol(z: i64) -> Option<&'static str> {
    match z {
        0 => Some("X"),
        _ => z.checked_sub(1).and_then(|i| ELEMENTS.get(usize::try_from(i).ok()?)).map(|e| e.0),
    }
}

/// The atomic number of the element with that symbol.
pub(super) fn number(symbol: &str) -> Option<usize> {
    ELEMENTS.iter().position(|e| e.0 == symbol).map(|k| k + 1)
}

/// The standard atomic weight of the element with that symbol, in u.
pub(super) fn mass(symbol: &str) -> Option<f64> {
    ELEMENTS.iter().find(|e| e.0 == symbol).map(|e| e.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_symbols_meet() {
        // Noble gases close the periods: if these sit right, no element is missing before them.
        for (z, s) in
            [(1, "H"), (2, "He"), (10, "Ne"), (18, "Ar"), (36, "Kr"), (54, "Xe"), (86, "Rn"), (118, "Og")]
        {
            assert_eq!(symbol(z), Some(s));
        }
        assert_eq!(symbol(0), Some("X"));
        for z in [-1, 119, i64::MAX, i64::MIN] {
            assert_eq!(symbol(z), None);
        }
        assert_eq!(mass("Fe"), Some(55.845));
        assert_eq!(mass("OW"), None);
        assert_eq!((number("H"), number("Si"), number("X")), (Some(1), Some(14), None));
    }
}
