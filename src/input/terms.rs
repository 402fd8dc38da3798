//! The terms of the energy, from the tables of an input.

use super::build::Model;
use super::neural;
use super::raw::{Cutoff, Energy, MixingRule, Raw, Row};
use super::reader::{Located, Reported, toml_key};
use super::report::Diagnostic;
use crate::catalog::{Builder, Ending, EnergyKind};
use crate::forces::pair::{Special, TypePairs};
use crate::forces::triplet::{NO_ROW, TypeTriples};
use crate::forces::{ParameterTable, Slot, Term};
use potentials::param::{Mixing, Param, Source};
use std::collections::HashMap;

/// Beyond this, in nm, there is nothing: the range of interactions without a cut-off in open systems.
const EVERYWHERE: f64 = 1e6;

type Joined = [Vec<(u32, u32)>; 3];

/// Makes all terms.
pub(super) fn build(model: &Model, raw: &Raw, joined: &Joined) -> Result<Vec<Box<dyn Term>>, Reported> {
    let mut terms = Vec::new();
    for kind in [EnergyKind::Bond, EnergyKind::Angle, EnergyKind::Dihedral, EnergyKind::Improper] {
        bonded(model, raw, kind, &mut terms)?;
    }
    for energy in &raw.energies {
        let about = energy.listed.about;
        let name = about.name;
        sensible(model, energy)?;
        match energy.listed.builder {
            Builder::Pair { build, .. } => {
                let ending = ending(model, energy)?;
                let (table, types) = by_pairs(model, energy)?;
                let special = special(energy, joined);
                terms.push(build(name, ending, table, types, special));
            }
            Builder::Embedding { build } => {
                let ending = ending(model, energy)?;
                let (table, types) = by_pairs(model, energy)?;
                embedded(model, energy, &types)?;
                terms.push(build(name, ending, table, types));
            }
            Builder::Triples { build, ordered } => {
                let (table, types) = by_triples(model, energy, ordered)?;
                terms.push(build(name, table, types));
            }
            Builder::Field { build, .. } => {
                let table = common(about.params, energy);
                let atoms = chosen(model, energy)?;
                let atoms: Vec<_> =
                    atoms.iter().map(|&i| (i, 0, model.positions.fraction(i as usize))).collect();
                terms.push(build(name, table, &atoms));
            }
            Builder::Global { build } => {
                let table = common(about.params, energy);
                terms.push(build(name, table, chosen(model, energy)?));
            }
            Builder::Neural { build } => {
                if let Some(keys) = &energy.neural {
                    terms.push(neural::build(model, raw, energy, keys, build)?);
                }
            }
            Builder::Tuple { .. } => {}
        }
    }
    Ok(terms)
}

/// Parameters of which one must be smaller than another: energy, smaller, larger.
const SMALLER: [(&str, &str, &str); 3] =
    [("mie", "m", "n"), ("sutton-chen", "m", "n"), ("tersoff", "D", "R")];

/// Checks what concerns several parameters at once.
fn sensible(model: &Model, energy: &Energy) -> Result<(), Reported> {
    let (name, params) = (energy.listed.about.name, energy.listed.about.params);
    let at = |key: &str| params.iter().position(|p| p.name == key);
    for row in energy.common.iter().chain(&energy.types).chain(&energy.rows) {
        let value = |key: &str| at(key).and_then(|k| row.values.get(k)?.as_ref());
        for (_, small, large) in SMALLER.iter().filter(|(energy, ..)| *energy == name) {
            if let (Some(a), Some(b)) = (value(small), value(large))
                && a.value >= b.value
            {
                let message = format!("`{small}` of `{name}` must be less than `{large}`");
                let diagnostic = Diagnostic::error(message).at(a.place.clone(), "");
                return Err(model.document.report(diagnostic.also(b.place.clone(), format!("`{large}`"))));
            }
        }
        if let (Some(x), Some(y), Some(z)) = (value("nx"), value("ny"), value("nz"))
            && [x, y, z].iter().all(|n| n.value == 0.0)
        {
            let message = format!("the normal of `{name}` is zero");
            let help = "such as `nx = 0, ny = 0, nz = 1` for a floor: it points to where atoms may be";
            return Err(model.document.report(Diagnostic::error(message).at(x.place.clone(), "").help(help)));
        }
    }
    Ok(())
}

fn chosen(model: &Model, energy: &Energy) -> Result<Vec<u32>, Reported> {
    match &energy.atoms {
        Some(selection) => model.select(selection),
        None => Ok((0..model.atoms.len() as u32).collect()),
    }
}

/// The slots of one set of parameters; numbers are added to the table under `label.parameter`.
fn slots(
    table: &mut ParameterTable,
    params: &[Param],
    label: &str,
    row: &Row,
    cutoff: Option<Slot>,
) -> Vec<Slot> {
    let mut slots = Vec::new();
    for (p, value) in params.iter().zip(&row.values) {
        slots.push(match (value, p.source) {
            (Some(x), _) if x.given || p.source == Source::Input => {
                let dot = if label.is_empty() { "" } else { "." };
                Slot::Value(table.number(format!("{label}{dot}{}", p.name), x.value))
            }
            (Some(x), _) => Slot::Constant(x.value),
            (None, _) => cutoff.unwrap_or(Slot::Constant(EVERYWHERE)),
        });
    }
    slots
}

fn common(params: &[Param], energy: &Energy) -> ParameterTable {
    let mut table = ParameterTable::new(params.len());
    if let Some(row) = &energy.common {
        let slots = slots(&mut table, params, "", row, None);
        table.row(&slots);
    }
    table
}

fn ending(model: &Model, energy: &Energy) -> Result<Ending, Reported> {
    let Some(Cutoff { distance, ending, inner }) = &energy.cutoff else { return Ok(Ending::Truncate) };
    let document = model.document;
    let name = energy.listed.about.name;
    let contains_it = energy.listed.about.params.iter().any(|p| p.source == Source::Cutoff);
    match distance.value {
        None if contains_it => {
            let message = format!("the formula of `{name}` contains the cut-off: it needs one");
            let help = "write `cutoff = \"9 A\"`, or take another energy, such as `coulomb` for charges";
            Err(document.report(Diagnostic::error(message).at(distance.place.clone(), "").help(help)))
        }
        Some(_) if inner.given && ending.value != Ending::Switch => {
            let message = "`inner` is where a switch begins, but this interaction has none";
            let diagnostic = Diagnostic::error(message)
                .at(inner.place.clone(), "")
                .help("take it out, or write `ending = \"switch\"`");
            Err(document.report(diagnostic.also(ending.place.clone(), "how it ends")))
        }
        None if model.periodic => {
            let message = "in a periodic system an interaction needs a cut-off";
            let help = "write `cutoff = \"9 A\"`; without end it would be a sum over infinitely many images";
            Err(document.report(Diagnostic::error(message).at(distance.place.clone(), "").help(help)))
        }
        // (an interaction that never ends needs no ending)
        None => Ok(Ending::Truncate),
        Some(cutoff) if ending.value == Ending::Switch && inner.value >= cutoff => {
            let message = "a switch must begin before the cut-off";
            let diagnostic = Diagnostic::error(message)
                .at(inner.place.clone(), "")
                .also(distance.place.clone(), "the cut-off")
                .help("left out, it begins at 0.9 of the cut-off");
            Err(document.report(diagnostic))
        }
        Some(_) => Ok(ending.value),
    }
}

/// A pair of type names: "A-B".
fn pair_of(model: &Model, name: &Located<String>) -> Result<(usize, usize), Reported> {
    let types = split(model, name, 2)?;
    Ok((types[0], types[1]))
}

/// `n` type names joined with dashes.
fn split(model: &Model, name: &Located<String>, n: usize) -> Result<Vec<usize>, Reported> {
    let parts: Vec<&str> = name.value.split('-').map(str::trim).collect();
    if parts.len() != n {
        return Err(wrong_number(model, name, n));
    }
    parts.into_iter().map(|part| model.type_of(part, &name.place)).collect()
}

fn wrong_number(model: &Model, name: &Located<String>, n: usize) -> Reported {
    let message = format!("`{}` should name {n} atom types, joined with `-`", name.value);
    let types = &model.atoms.type_names;
    let example: Vec<&str> =
        (0..n).filter_map(|k| types.get(k.min(types.len().saturating_sub(1)))).map(String::as_str).collect();
    let help = format!("such as `{}`", example.join("-"));
    model.document.report(Diagnostic::error(message).at(name.place.clone(), "").help(help))
}

/// A cut-off of a pair's or a type's own must lie beyond the beginning of the term's switch.
fn own_cutoffs(model: &Model, energy: &Energy) -> Result<(), Reported> {
    let Some(Cutoff { inner, ending, distance }) = &energy.cutoff else { return Ok(()) };
    if ending.value != Ending::Switch || distance.value.is_none() {
        return Ok(());
    }
    for own in energy.types.iter().chain(&energy.rows).filter_map(|row| row.cutoff.as_ref()) {
        if own.value <= inner.value {
            let message = "a switch must begin before the cut-off, here that of some atoms";
            let diagnostic = Diagnostic::error(message).at(own.place.clone(), "their cut-off");
            let diagnostic = match inner.given {
                true => diagnostic.also(inner.place.clone(), "the switch begins").help("begin it earlier"),
                false => diagnostic
                    .also(distance.place.clone(), "the switch begins at 0.9 of this")
                    .help("say with `inner` where it begins, for all pairs, or make the cut-offs more alike"),
            };
            return Err(model.document.report(diagnostic));
        }
    }
    Ok(())
}

/// Rows for pairs of types, by mixing and by explicit pairs.
fn by_pairs(model: &Model, energy: &Energy) -> Result<(ParameterTable, TypePairs), Reported> {
    own_cutoffs(model, energy)?;
    let params = energy.listed.about.params;
    let n = model.atoms.type_names.len();
    let mut table = ParameterTable::new(params.len() + 2);
    let mut pairs = TypePairs::none(n);
    let cutoff = energy.cutoff.as_ref();
    let distance = cutoff.and_then(|c| c.distance.value);
    let (rc, rs) = match (distance, cutoff) {
        (Some(rc), Some(c)) => {
            let distance = Slot::Value(table.number("cutoff", rc));
            let inner = match c.ending.value {
                Ending::Switch => Slot::Value(table.number("inner", c.inner.value)),
                _ => Slot::Constant(c.inner.value),
            };
            (distance, inner)
        }
        _ => (Slot::Constant(EVERYWHERE), Slot::Constant(0.0)),
    };
    let reach = distance.unwrap_or(EVERYWHERE);

    // one set for all types
    if let Some(row) = &energy.common {
        let mut all = slots(&mut table, params, "", row, Some(rc));
        all.extend([rc, rs]);
        let row = table.row(&all);
        (0..n).for_each(|a| (a..n).for_each(|b| pairs.set(a, b, row, reach)));
        return Ok((table, pairs));
    }

    // sets by type
    let mut of_type: Vec<Option<(Vec<Slot>, Option<f64>)>> = vec![None; n];
    let mut silent = vec![false; n];
    let mut seen: HashMap<usize, &Located<String>> = HashMap::new();
    for row in &energy.types {
        if row.name.value.contains('-') {
            let message = format!("`{}` is no atom type", row.name.value);
            let table = format!("{}.{}", energy.listed.kind.key(), energy.listed.about.name);
            let help = format!("pairs of types stand in `[{table}.pairs]`");
            let diagnostic = Diagnostic::error(message).at(row.name.place.clone(), "").help(help);
            return Err(model.document.report(diagnostic));
        }
        let t = model.type_of(&row.name.value, &row.name.place)?;
        twice(model, &row.name, seen.insert(t, &row.name))?;
        if row.values.is_empty() && !params.is_empty() {
            silent[t] = true;
        } else {
            let slots = slots(&mut table, params, &row.name.value, row, Some(rc));
            of_type[t] = Some((slots, row.cutoff.as_ref().map(|c| c.value)));
        }
    }
    // sets by pair
    let mut explicit: HashMap<(usize, usize), &Row> = HashMap::new();
    for row in &energy.rows {
        let (a, b) = pair_of(model, &row.name)?;
        let first = explicit.insert((a.min(b), a.max(b)), row);
        twice(model, &row.name, first.map(|r| &r.name))?;
    }
    let rule = energy.mixing.as_ref().map_or(MixingRule::None, |m| m.value);
    for a in 0..n {
        for b in a..n {
            let mut reach = reach;
            let mut own_cutoff = |table: &mut ParameterTable, label: &str, own: Option<f64>| match own {
                Some(own) => {
                    reach = own;
                    Slot::Value(table.number(format!("{label}.cutoff"), own))
                }
                None => rc,
            };
            let label = format!("{}-{}", model.atoms.type_names[a], model.atoms.type_names[b]);
            let mut row: Vec<Slot>;
            let end;
            if let Some(given) = explicit.get(&(a, b)) {
                if given.values.is_empty() && !params.is_empty() {
                    continue;
                }
                end = own_cutoff(&mut table, &label, given.cutoff.as_ref().map(|c| c.value));
                row = slots(&mut table, params, &label, given, Some(end));
            } else if silent[a] || silent[b] {
                continue;
            } else {
                let both = of_type[a].as_ref().zip(of_type[b].as_ref());
                let mixed = both.and_then(|((x, cx), (y, cy))| {
                    let row = if a == b { Some(x.clone()) } else { mix(params, rule, x, y) };
                    let cut = cx.zip(*cy).map(|(p, q)| p.max(q)).or(*cx).or(*cy);
                    row.map(|row| (row, cut))
                });
                let Some((slots, own)) = mixed else {
                    let without = |&t: &usize| of_type[t].is_none();
                    let can_mix = rule != MixingRule::None;
                    let missing = [a, b].into_iter().find(without).filter(|_| a == b || can_mix);
                    return Err(no_parameters(model, energy, &label, missing));
                };
                end = own_cutoff(&mut table, &label, own);
                row = slots;
                for (slot, p) in row.iter_mut().zip(params) {
                    if p.source == Source::Cutoff {
                        *slot = end;
                    }
                }
            }
            row.extend([end, rs]);
            let row = table.row(&row);
            pairs.set(a, b, row, reach);
        }
    }
    Ok((table, pairs))
}

fn twice(model: &Model, name: &Located<String>, first: Option<&Located<String>>) -> Result<(), Reported> {
    let Some(first) = first else { return Ok(()) };
    let message = format!("`{}` is given twice", name.value);
    let help = match name.value == first.value {
        true => "take one of them out".to_owned(),
        false => format!("`{}` and `{}` are the same; take one of them out", first.value, name.value),
    };
    let diagnostic = Diagnostic::error(message)
        .at(name.place.clone(), "")
        .also(first.place.clone(), "first here")
        .help(help);
    Err(model.document.report(diagnostic))
}

/// `k = …, r0 = …`
fn keys(energy: &Energy) -> String {
    let written = energy.listed.about.params.iter().filter(|p| p.source == Source::Input);
    written.map(|p| format!("{} = …", p.name)).collect::<Vec<_>>().join(", ")
}

/// `missing` is the type that has no parameters, if it is one type's fault.
fn no_parameters(model: &Model, energy: &Energy, label: &str, missing: Option<usize>) -> Reported {
    let (kind, name) = (energy.listed.kind.key(), energy.listed.about.name);
    let keys = keys(energy);
    let (message, help) = match missing {
        Some(t) => {
            let t = toml_key(&model.atoms.type_names[t]);
            let message = format!("`{name}` has no parameters for the type {t}");
            let add = format!("add `{t} = {{ {keys} }}` to `[{kind}.{name}.types]`");
            (message, format!("{add}, or `{t} = {{ none = true }}` if it does not interact"))
        }
        None => {
            let message = format!("`{name}` has no parameters for the pair {label}");
            let add = format!("add `{label} = {{ {keys} }}` to `[{kind}.{name}.pairs]`");
            (message, format!("{add}, or `{label} = {{ none = true }}` if they do not interact"))
        }
    };
    model.document.report(Diagnostic::error(message).at(energy.place.clone(), "").help(help))
}

/// The slots of two unlike types.
fn mix(params: &[Param], rule: MixingRule, x: &[Slot], y: &[Slot]) -> Option<Vec<Slot>> {
    if rule == MixingRule::None {
        return None;
    }
    let index = |s: Slot| match s {
        Slot::Value(k) => Some(k),
        _ => None,
    };
    let size = params.iter().position(|p| p.mixing == Mixing::Size);
    let mut mixed = Vec::new();
    for (k, p) in params.iter().enumerate() {
        if p.source == Source::Cutoff {
            mixed.push(x[k]);
            continue;
        }
        if x[k] == y[k] {
            mixed.push(x[k]);
            continue;
        }
        let (a, b) = (index(x[k])?, index(y[k])?);
        mixed.push(match (p.mixing, rule) {
            (Mixing::Explicit, _) | (_, MixingRule::None) => return None,
            (Mixing::Size, MixingRule::LorentzBerthelot) => Slot::Arithmetic(a, b),
            (Mixing::Size, MixingRule::Geometric) => Slot::Geometric(a, b),
            (Mixing::Size, MixingRule::WaldmanHagler) => Slot::SixthPower(a, b),
            (Mixing::Depth, MixingRule::WaldmanHagler) => {
                let s = size?;
                Slot::SixthPowerDepth(a, b, index(x[s])?, index(y[s])?)
            }
            (Mixing::Depth, _) => Slot::Geometric(a, b),
        });
    }
    Some(mixed)
}

fn special(energy: &Energy, joined: &Joined) -> Special {
    let factors = energy.bonded_factors.as_ref().map_or([0.0, 0.0, 1.0], |f| f.value);
    let mut special =
        Special { leave_out: factors.map(|f| f != 1.0), pairs: Vec::new(), remainder: energy.remainder };
    for (pairs, factor) in joined.iter().zip(factors) {
        if factor != 1.0 && (factor != 0.0 || energy.remainder) {
            special.pairs.extend(pairs.iter().map(|&(i, j)| (i, j, factor)));
        }
    }
    special
}

/// An atom is embedded with the parameters of its type with itself, which must be there if it has neighbours.
fn embedded(model: &Model, energy: &Energy, types: &TypePairs) -> Result<(), Reported> {
    let n = types.types;
    for a in 0..n {
        let meets = |b: usize| types.cutoff2[a * n + b] > 0.0;
        if !meets(a) && (0..n).any(meets) {
            let (name, energy_name) = (&model.atoms.type_names[a], energy.listed.about.name);
            let message = format!("`{energy_name}` has no parameters to embed {name} with");
            let help = format!(
                "{name} has neighbours of other types, and is embedded with the parameters of {name}-{name}: give them"
            );
            let diagnostic = Diagnostic::error(message).at(energy.place.clone(), "").help(help);
            return Err(model.document.report(diagnostic));
        }
    }
    Ok(())
}

/// Rows by three types, the middle atom first; where the order of the other two has no meaning, one of the two
/// orders will do.
fn by_triples(
    model: &Model,
    energy: &Energy,
    ordered: bool,
) -> Result<(ParameterTable, TypeTriples), Reported> {
    let params = energy.listed.about.params;
    let n = model.atoms.type_names.len();
    let mut table = ParameterTable::new(params.len());
    let mut types = TypeTriples { types: n, rows: vec![NO_ROW; n * n * n] };
    let mut seen: HashMap<usize, &Located<String>> = HashMap::new();
    for row in &energy.rows {
        let t = split(model, &row.name, 3)?;
        let at = (t[0] * n + t[1]) * n + t[2];
        twice(model, &row.name, seen.insert(at, &row.name))?;
        let slots = slots(&mut table, params, &row.name.value, row, None);
        types.rows[at] = table.row(&slots) as u32;
    }
    for at in 0..n * n * n {
        let swapped = at / (n * n) * n * n + at % n * n + at / n % n;
        let (one, other) = (types.rows[at], types.rows[swapped]);
        if !ordered && one == NO_ROW {
            types.rows[at] = other;
        } else if !ordered && other != NO_ROW {
            let differs = |&k: &usize| table.field(one as usize, k) != table.field(other as usize, k);
            if let Some(k) = (0..params.len()).find(differs) {
                let [first, then] = [at, swapped].map(|at| seen[&at]);
                let message = format!(
                    "{} and {} are the same triple, but differ in `{}`",
                    first.value, then.value, params[k].name
                );
                let help = "the order of the two neighbours has no meaning here: leave one of them out";
                let diagnostic = Diagnostic::error(message)
                    .at(then.place.clone(), "")
                    .also(first.place.clone(), "the other order")
                    .help(help);
                return Err(model.document.report(diagnostic));
            }
        }
        if types.rows[at] == NO_ROW {
            let name = |k: usize| model.atoms.type_names[k].as_str();
            let triple = [name(at / n / n), name(at / n % n), name(at % n)].join("-");
            let energy_name = energy.listed.about.name;
            let message = format!("`{energy_name}` has no parameters for the triple {triple}");
            let keys = keys(energy);
            let help = format!(
                "add `{triple} = {{ {keys} }}` to `[many-body.{energy_name}]`; the first type is the middle atom"
            );
            return Err(model
                .document
                .report(Diagnostic::error(message).at(energy.place.clone(), "").help(help)));
        }
    }
    Ok((table, types))
}

/// The terms of one kind of bonded energy: every tuple of the topology finds its rows.
fn bonded(
    model: &Model,
    raw: &Raw,
    kind: EnergyKind,
    terms: &mut Vec<Box<dyn Term>>,
) -> Result<(), Reported> {
    fn padded<const N: usize>(tuples: &[[u32; N]]) -> Vec<[u32; 4]> {
        tuples.iter().map(|t| std::array::from_fn(|k| if k < N { t[k] } else { 0 })).collect()
    }
    let t = &model.topology;
    let (n, tuples) = match kind {
        EnergyKind::Bond => (2, padded(&t.bonds)),
        EnergyKind::Angle => (3, padded(&t.angles)),
        EnergyKind::Dihedral => (4, padded(&t.dihedrals)),
        _ => (4, t.impropers.clone()),
    };
    // the patterns of all energies of this kind
    struct Pattern<'a> {
        types: Vec<Option<usize>>,
        name: &'a Located<String>,
        energy: usize,
        row: u32,
        used: bool,
    }
    let energies: Vec<&Energy> = raw.energies.iter().filter(|e| e.listed.kind == kind).collect();
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut tables = Vec::new();
    for (k, energy) in energies.iter().enumerate() {
        let params = energy.listed.about.params;
        let mut table = ParameterTable::new(params.len());
        for (m, row) in energy.rows.iter().enumerate() {
            let parts: Vec<&str> = row.name.value.split('-').map(str::trim).collect();
            if parts.len() != n {
                return Err(wrong_number(model, &row.name, n));
            }
            let mut types = Vec::new();
            for part in parts {
                types.push(if part == "*" { None } else { Some(model.type_of(part, &row.name.place)?) });
            }
            let other_way = |p: &&Pattern| {
                p.energy == k && p.name.value != row.name.value && same_name(&p.types) == same_name(&types)
            };
            twice(model, &row.name, patterns.iter().find(other_way).map(|p| p.name))?;
            // (several rows of one name, as in a Fourier series of dihedrals, are numbered)
            let same = energy.rows[..m].iter().filter(|r| r.name.value == row.name.value).count();
            let label =
                if same == 0 { row.name.value.clone() } else { format!("{}#{}", row.name.value, same + 1) };
            let slots = slots(&mut table, params, &label, row, None);
            let index = table.row(&slots) as u32;
            patterns.push(Pattern { types, name: &row.name, energy: k, row: index, used: false });
        }
        tables.push(table);
    }
    // which patterns a tuple of types takes, looked up once for each
    let mut chosen: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
    let mut lists: Vec<Vec<([u32; 4], u32)>> = vec![Vec::new(); energies.len()];
    for tuple in &tuples {
        let types: Vec<usize> = tuple[..n].iter().map(|&a| model.atoms.types[a as usize] as usize).collect();
        if !chosen.contains_key(&types) {
            let fits = |p: &Pattern| {
                let direct = p.types.iter().zip(&types).all(|(p, t)| p.is_none_or(|p| p == *t));
                let reversed = p.types.iter().rev().zip(&types).all(|(p, t)| p.is_none_or(|p| p == *t));
                direct || reversed
            };
            let stars = |p: &Pattern| p.types.iter().filter(|t| t.is_none()).count();
            let best = patterns.iter().filter(|p| fits(p)).map(stars).min();
            let mut found: Vec<usize> = (0..patterns.len())
                .filter(|&k| fits(&patterns[k]) && Some(stars(&patterns[k])) == best)
                .collect();
            // of equally special patterns the first one named counts (in every energy)
            if let Some(&first) = found.first() {
                let name = same_name(&patterns[first].types);
                found.retain(|&k| same_name(&patterns[k].types) == name);
            } else {
                return Err(missing(model, raw, kind, &types, &tuple[..n], &energies));
            }
            chosen.insert(types.clone(), found);
        }
        for &k in &chosen[&types] {
            patterns[k].used = true;
            lists[patterns[k].energy].push((*tuple, patterns[k].row));
        }
    }
    for p in patterns.iter().filter(|p| !p.used) {
        let message = format!("no {} of the system is `{}`", kind.key(), p.name.value);
        let help = match (raw.molecules.is_empty(), kind) {
            (true, _) => {
                Some("what is bonded is said in `[molecules.NAME]`, of which there is none".to_owned())
            }
            (_, EnergyKind::Bond | EnergyKind::Improper) => {
                Some(format!("they are listed in the `{}s` of the molecules", kind.key()))
            }
            _ => None,
        };
        let warning = Diagnostic::warning(message).at(p.name.place.clone(), "not used");
        model.document.report_warning(warning.maybe_help(help));
    }
    for ((energy, table), list) in energies.iter().zip(tables).zip(lists) {
        if let Builder::Tuple { build, .. } = energy.listed.builder {
            let name = energy.listed.about.name;
            let prefixed = match kind {
                EnergyKind::Improper => name.to_owned(),
                _ => format!("{}-{name}", kind.key()),
            };
            terms.push(build(&prefixed, model.atoms.len(), table, &list));
        }
    }
    Ok(())
}

/// A pattern and its reverse are the same.
fn same_name(types: &[Option<usize>]) -> Vec<Option<usize>> {
    let reversed: Vec<_> = types.iter().rev().copied().collect();
    types.to_vec().min(reversed)
}

/// A bond, an angle … for which no pattern fits.
fn missing(
    model: &Model,
    raw: &Raw,
    kind: EnergyKind,
    types: &[usize],
    tuple: &[u32],
    energies: &[&Energy],
) -> Reported {
    let names: Vec<&str> = types.iter().map(|&t| model.atoms.type_names[t].as_str()).collect();
    let names = names.join("-");
    let kind_name = kind.key();
    let atoms: Vec<String> = tuple.iter().map(|a| (a + 1).to_string()).collect();
    let message = format!("there are no parameters for the {kind_name} {names} (atoms {})", atoms.join("-"));
    let molecule = model.molecule_names[tuple[0] as usize].as_ref();
    let molecule = molecule.and_then(|m| raw.molecules.iter().find(|(name, _)| name.value == *m));
    let mut help = match energies.first() {
        Some(energy) => {
            format!("add `{names} = {{ {} }}` to `[{kind_name}.{}]`", keys(energy), energy.listed.about.name)
        }
        None => {
            let example = match kind {
                EnergyKind::Bond => "k = …, r0 = …",
                EnergyKind::Angle => "k = …, theta0 = …",
                _ => "…",
            };
            let name = match kind {
                EnergyKind::Dihedral => "periodic",
                EnergyKind::Improper => "harmonic-improper",
                _ => "harmonic",
            };
            format!("add a table such as `[{kind_name}.{name}]` with `{names} = {{ {example} }}`")
        }
    };
    let implied = molecule.is_some_and(|(_, m)| match kind {
        EnergyKind::Angle => m.angles.is_none(),
        EnergyKind::Dihedral => m.dihedrals.is_none(),
        _ => false,
    });
    if let (true, Some((name, _))) = (implied, molecule) {
        let molecule = toml_key(&name.value);
        help += &format!(", or write `{kind_name}s = []` in `[molecules.{molecule}]` if it has none");
    }
    let mut diagnostic = Diagnostic::error(message).help(help);
    let mut places = Vec::new();
    places.extend(energies.first().map(|energy| (energy.place.clone(), "not here")));
    places.extend(molecule.map(|(name, _)| (name.place.clone(), "needed by this molecule")));
    let mut places = places.into_iter();
    if let Some((place, label)) = places.next() {
        diagnostic = diagnostic.at(place, label);
    }
    for (place, label) in places {
        diagnostic = diagnostic.also(place, label);
    }
    model.document.report(diagnostic)
}
