//! Files of other programs and of every shape, written, read, cut and broken.
//!
//! `tests/reference/files_own` holds files of our own making with what was written into them. Files of
//! other projects are read from `$MD_REFERENCE/files`, and compared with what their readers return.

use std::fs;
use std::path::{Path, PathBuf};

use md::formats::gro::GroWriter;
use md::formats::xtc::XtcWriter;
use md::formats::xyz::XyzWriter;
use md::formats::{
    AtomLabel, Column, ColumnData, Digits, Format, FormatError, Frame, FrameUnits, InfoValue, Precision,
    Residue, TrajectoryWriter, Which, frames, read_structure, read_structure_bytes, scan, scan_file, writer,
};
use proptest::prelude::*;
use serde_json::Value;

const NM: FrameUnits = FrameUnits::Nanometre;

fn read_all(bytes: &[u8], format: Format) -> Result<Vec<Frame>, FormatError> {
    frames(bytes, format, NM).collect()
}

fn written(frames: &[Frame], format: Format, precision: Precision) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = writer(&mut bytes, format, precision);
    frames.iter().for_each(|f| out.write(f).unwrap());
    drop(out);
    bytes
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn vectors(v: &Value) -> Vec<[f64; 3]> {
    v.as_array().unwrap().iter().map(|v| numbers(v).try_into().unwrap()).collect()
}

#[track_caller]
fn close(found: &[[f64; 3]], expected: &[[f64; 3]], limit: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        for k in 0..3 {
            // (reading rounds, too)
            let limit = limit + f64::EPSILON * e[k].abs();
            assert!((f[k] - e[k]).abs() <= limit, "{what} {i}: {f:?} and not {e:?}");
        }
    }
}

/// Lengths and angles of a cell, as crystallographers and readers give them; zeros without a cell.
fn lengths_and_angles(cell: Option<[[f64; 3]; 3]>) -> [f64; 6] {
    let Some([a, b, c]) = cell else {
        return [0.0, 0.0, 0.0, 90.0, 90.0, 90.0];
    };
    let dot = |u: [f64; 3], v: [f64; 3]| (0..3).map(|k| u[k] * v[k]).sum::<f64>();
    let norm = |u| dot(u, u).sqrt();
    let angle = |u, v| (dot(u, v) / norm(u) / norm(v)).acos().to_degrees();
    [norm(a), norm(b), norm(c), angle(b, c), angle(a, c), angle(a, b)]
}

// ---- Files of our own making ----

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/files_own")
}

fn truth(file: &str) -> Value {
    let all = json(&own().join("expected.json"));
    let files = all["files"].as_array().unwrap();
    files.iter().find(|f| f["file"] == file).unwrap()["truth"].clone()
}

fn first(file: &str) -> Frame {
    read_structure(own().join(file), None, Which::First, NM).unwrap()
}

#[test]
fn own_gro_files_are_what_was_written() {
    for file in ["triclinic_vel.gro", "highprec.gro"] {
        let (truth, frame) = (truth(file), first(file));
        close(&frame.positions, &vectors(&truth["positions_nm"]), 0.0, "position");
        close(frame.velocities.as_ref().unwrap(), &vectors(&truth["velocities_nm_ps"]), 0.0, "velocity");
        let mut b = numbers(&truth["box_line"]);
        b.resize(9, 0.0);
        assert_eq!(frame.cell, Some([[b[0], b[3], b[4]], [b[5], b[1], b[6]], [b[7], b[8], b[2]]]), "{file}");
        assert_eq!((frame.title.as_str(), frame.time, frame.step), ("own deck", Some(12.5), Some(6250)));
        let label = |name: &str, number, residue: &str| AtomLabel {
            name: name.into(),
            residue: Some(Residue { number, name: residue.into() }),
        };
        let expected = [label("HW1", 99998, "LIG"), label("C12AB", 99998, "NA+"), label("OW", 99999, "SOL")];
        assert_eq!(frame.atoms[1..4], expected);
    }
    let frame = first("ala2.gro");
    assert_eq!((frame.len(), frame.time, frame.velocities), (22, None, None));
    assert_eq!(frame.title, "GROningen MAchine for Chemical Simulation");
}

#[test]
fn own_gro_files_are_written_as_they_were() {
    for (file, decimals) in [("triclinic_vel.gro", 3), ("highprec.gro", 7), ("ala2.gro", 3)] {
        let frame = first(file);
        let bytes = written(
            std::slice::from_ref(&frame),
            Format::Gro,
            Precision { decimals, ..Precision::default() },
        );
        assert_eq!(read_all(&bytes, Format::Gro).unwrap(), [frame]);
        // The atoms' lines too, but for atom numbers that do not start at 1.
        let original = fs::read_to_string(own().join(file)).unwrap();
        let again = String::from_utf8(bytes).unwrap();
        for (a, b) in original.lines().zip(again.lines()).skip(2).take(first(file).len()) {
            assert_eq!((&a[..15], &a[20..]), (&b[..15], &b[20..]));
        }
    }
}

#[test]
fn own_xyz_file_is_what_was_written() {
    let all = fs::read(own().join("odd.xyz")).unwrap();
    let all = read_all(&all, Format::Xyz).unwrap();
    let truth = truth("odd.xyz");
    let truth = truth.as_array().unwrap();
    assert_eq!(all.len(), truth.len());
    let ev = 96.485_332_123; // kJ/mol
    let scaled = |v: &Value, f: f64| vectors(v).iter().map(|x| x.map(|x| x * f)).collect::<Vec<_>>();
    for (i, (frame, truth)) in all.iter().zip(truth).enumerate() {
        assert_eq!(frame.len() as u64, truth["n"].as_u64().unwrap());
        close(&frame.positions, &scaled(&truth["positions"], 0.1), 1e-14, "position");
        close(frame.forces.as_ref().unwrap(), &scaled(&truth["forces"], 10.0 * ev), 1e-5, "force");
        close(&frame.cell.unwrap(), &scaled(&truth["lattice"], 0.1), 1e-14, "cell vector");
        approx::assert_relative_eq!(
            frame.energy.unwrap(),
            truth["energy"].as_f64().unwrap() * ev,
            max_relative = 1e-10
        );
        assert_eq!(frame.periodic, Some([true, true, false]));
        let names: Vec<&str> = frame.atoms.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(serde_json::json!(names), truth["species"]);
        assert_eq!(frame.info("config_type"), Some(&InfoValue::Quoted("two words, with = sign".into())));
        assert_eq!(frame.info("Time").and_then(InfoValue::as_f64), Some(i as f64 * 0.5));
        let Some(ColumnData::Integer(tags)) = frame.column("tag_index").map(|c| &c.data) else { panic!() };
        assert_eq!(tags[..4], [0, 3, 6, 9]);
        let Some(ColumnData::Logical(mask)) = frame.column("move_mask").map(|c| &c.data) else { panic!() };
        assert_eq!(mask[..4], [false, true, false, true]);
    }
}

#[test]
fn own_xtc_files_are_what_was_written() {
    for file in ["7atoms.xtc", "33atoms.xtc"] {
        let bytes = fs::read(own().join(file)).unwrap();
        let all = read_all(&bytes, Format::Xtc).unwrap();
        let truth = truth(file);
        // The times that were meant begin at -4 ps, but the writer of these files counts from 0: the words
        // at bytes 8 and 12 of each frame are the steps 0, 1000 … and the times 0, 2 … (as molly finds too).
        let times: Vec<f64> = all.iter().map(|f| f.time.unwrap()).collect();
        let meant = numbers(&truth["times_ps"]);
        assert_eq!(times, meant.iter().map(|t| t - meant[0]).collect::<Vec<_>>());
        assert!(all.iter().enumerate().all(|(i, f)| f.step == Some(1000 * i as u64)));
        for (k, frame) in all.iter().enumerate() {
            let angstrom: Vec<[f64; 3]> = frame.positions.iter().map(|p| p.map(|x| x * 10.0)).collect();
            close(&angstrom, &vectors(&truth["positions_angstrom"][k]), 1e-5, "position");
            let cell = lengths_and_angles(frame.cell);
            for (i, (f, e)) in cell.into_iter().zip(numbers(&truth["box_lengths_angles"][k])).enumerate() {
                let f = if i < 3 { f * 10.0 } else { f };
                assert!((f - e).abs() < 1e-4, "{file}: {cell:?}");
            }
        }
        // Written again by us with their precision they have the same positions to the bit, and molly reads them too.
        let again = written(&all, Format::Xtc, precision(4));
        assert_eq!(read_all(&again, Format::Xtc).unwrap(), all);
        assert_eq!(molly(&again), all);
    }
}

/// The frames as the crate molly reads them, with positions on the same grid as ours.
fn molly(bytes: &[u8]) -> Vec<Frame> {
    let all = molly::XTCReader::new(bytes).read_all_frames().unwrap();
    let frame = |f: &molly::Frame| {
        let p = f64::from(f.precision);
        let on_grid = |x: f32| if f.natoms() <= 9 { x.into() } else { (f64::from(x) * p).round() / p };
        let b = f.boxvec.map(f64::from);
        Frame {
            step: Some(f.step.into()),
            time: Some(f.time.into()),
            cell: Some([[b[0], b[1], b[2]], [b[3], b[4], b[5]], [b[6], b[7], b[8]]])
                .filter(|c| c.as_flattened().iter().any(|&x| x != 0.0)),
            positions: f.coords().map(|x| x.map(on_grid)).collect(),
            ..Frame::default()
        }
    };
    all.iter().map(frame).collect()
}

// ---- Files of other projects ----

/// Where a reader is not to be followed: file, reader, what (`*`: everything), why.
const NOT_FOLLOWED: &[(&str, &str, &str, &str)] = &[
    ("mdanalysis/huge_box.gro", "chemfiles", "box", "three numbers without blanks; it falls back to no cell"),
    ("mdanalysis/huge_box.gro", "ase", "cell", "the same"),
    ("mdanalysis/two_water_gro_multiframe.gro", "mda", "n_frames", "it reads one frame of a GRO file"),
    ("chemfiles/extended.xyz", "mda", "n_frames", "it does not read frames of different sizes"),
];

fn followed(file: &str, reader: &str, what: &str) -> bool {
    let rule = |r: &&(&str, &str, &str, &str)| r.0 == file && r.1 == reader && (r.2 == what || r.2 == "*");
    !NOT_FOLLOWED.iter().any(|r| rule(&r))
}

#[test]
fn files_of_other_projects_read_as_their_readers_say() {
    let Ok(reference) = std::env::var("MD_REFERENCE") else {
        println!("skipped: MD_REFERENCE is not set to the folder of reference cases");
        return;
    };
    let folder = Path::new(&reference).join("files");
    let expected = json(&folder.join("expected.json"));
    let mut wrong = Vec::new();
    let mut good = 0;
    for entry in expected["files"].as_array().unwrap() {
        let file = entry["file"].as_str().unwrap();
        let Ok(format) = Format::from_path(file) else { continue };
        let bytes = fs::read(folder.join(file)).unwrap();
        let name = Path::new(file).file_name().unwrap().to_str().unwrap();
        let bad = name.starts_with("bad-") || ["truncated.gro", "missing_atomname.gro"].contains(&name);
        let before = wrong.len();
        match (read_all(&bytes, format), bad) {
            (Ok(_), true) => wrong.push(format!("{file}: read, although it is broken")),
            (Err(e), true) if e.line().is_none() => wrong.push(format!("{file}: no line in `{e}`")),
            (Err(e), true) => println!("{file}: {e}"),
            (Err(e), false) => wrong.push(format!("{file}: {e}")),
            (Ok(frames), false) => {
                for (reader, says) in entry["readers"].as_object().unwrap() {
                    if says.get("error").is_none() {
                        compare(&mut wrong, file, &frames, reader, says);
                    }
                }
            }
        }
        good += usize::from(wrong.len() == before);
    }
    println!("{good} files as expected");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(good > 10);
}

fn compare(wrong: &mut Vec<String>, file: &str, frames: &[Frame], reader: &str, says: &Value) {
    let mut check = |what: &str, ok: bool, found: &dyn std::fmt::Debug, expected: &Value| {
        if !ok && followed(file, reader, what) {
            wrong.push(format!("{file}: {what} is {found:?}, {reader} says {expected}"));
        }
    };
    let count = says["n_frames"].as_u64().unwrap() as usize;
    check("n_frames", frames.len() == count, &frames.len(), &says["n_frames"]);
    let near = |a: f64, b: f64| (a - b).abs() <= 0.002 + 1e-6 * b.abs();
    let near3 = |a: [f64; 3], b: &Value| a.iter().zip(numbers(b)).all(|(&a, b)| near(a, b));
    for said in says["frames"].as_array().unwrap() {
        let index = said["frame"].as_u64().unwrap() as usize;
        let Some(frame) = frames.get(index) else { continue };
        let angstrom: Vec<[f64; 3]> = frame.positions.iter().map(|p| p.map(|x| x * 10.0)).collect();
        if let Some(n) = said.get("n_atoms") {
            check("n_atoms", n.as_u64() == Some(frame.len() as u64), &frame.len(), n);
        }
        let three = said["first3"].as_array().unwrap();
        let ok = three.iter().zip(&angstrom).all(|(e, &f)| near3(f, e)) && angstrom.len() >= three.len();
        check("first3", ok, &&angstrom[..angstrom.len().min(3)], &said["first3"]);
        if let Some(last) = said.get("last") {
            let found = angstrom.last().copied().unwrap_or_default();
            check("last", near3(found, last), &found, last);
        }
        if let Some(v) = said.get("first_velocity") {
            let found = frame.velocities.as_ref().map_or([0.0; 3], |v| v[0].map(|x| x * 10.0));
            check("velocity", near3(found, v), &found, v);
        }
        if let Some(cell) = said.get("box").filter(|b| !b.is_null()) {
            let mut found = lengths_and_angles(frame.cell);
            found[..3].iter_mut().for_each(|x| *x *= 10.0);
            let ok = found.iter().zip(numbers(cell)).all(|(&f, e)| (f - e).abs() <= 0.01 + 1e-6 * e.abs());
            check("box", ok, &found, cell);
        }
        if let Some(cell) = said.get("cell") {
            let found = frame.cell.unwrap_or_default().map(|v| v.map(|x| x * 10.0));
            let ok = found.iter().zip(cell.as_array().unwrap()).all(|(&f, e)| near3(f, e));
            check("cell", ok, &found, cell);
        }
        if let Some(time) = said.get("time_ps").filter(|_| file.ends_with("xtc")) {
            let found = frame.time.unwrap_or(0.0);
            check("time", near(found, time.as_f64().unwrap()), &found, time);
        }
        if let Some(names) = says.get("first_names").filter(|_| !file.ends_with("xtc") && index == 0) {
            let found: Vec<&str> = frame.atoms.iter().take(3).map(|a| a.name.as_str()).collect();
            let n = names.as_array().unwrap().len().min(found.len());
            let ok = names.as_array().unwrap().iter().zip(&found).all(|(e, f)| e == f) && n > 0;
            check("names", ok, &found, names);
        }
        if let Some(names) = says.get("first_resnames").filter(|_| file.ends_with("gro")) {
            let name = |a: &AtomLabel| a.residue.clone().unwrap_or_default().name;
            let found: Vec<String> = frame.atoms.iter().take(3).map(name).collect();
            check("residues", serde_json::json!(found) == *names, &found, names);
        }
    }
}

#[test]
fn every_frame_of_the_broken_xyz_files_is_refused() {
    let Ok(reference) = std::env::var("MD_REFERENCE") else {
        println!("skipped: MD_REFERENCE is not set to the folder of reference cases");
        return;
    };
    for file in ["bad-extended.xyz", "bad-extended-bad-properties.xyz"] {
        let text = fs::read_to_string(Path::new(&reference).join("files/chemfiles").join(file)).unwrap();
        // Each piece is a frame of one atom with a fault of its own, which its comment names.
        let mut pieces = Vec::<String>::new();
        for line in text.lines() {
            if line == "1" {
                pieces.push(String::new());
            }
            pieces.last_mut().unwrap().extend([line, "\n"]);
        }
        assert!(pieces.len() >= 5);
        for piece in pieces {
            let error = read_all(piece.as_bytes(), Format::Xyz).expect_err(&piece);
            assert!(matches!(error.line(), Some(2 | 3)), "{piece}{error}");
        }
    }
}

// ---- Small files by hand ----

#[test]
fn comment_lines_as_programs_write_them() {
    let file = r#"1
Lattice=[[4, 0, 0], [0, 5, 0], [0, 0, 6]] Properties=species:S:1:pos:R:3:Z:I:1 pbc=[T, F, T] step=12 time=0.5 flag  "two words"='x "y" \'z\'' path="C:\\a \"b\"\nc" old={1 2 3} nested=[["a]", "b"], [1, 2]] title="hello" stress = 3
C 1 2 3 6
"#;
    let frame = read_structure_bytes(file.as_bytes(), Format::Xyz, Which::Last, NM).unwrap();
    assert_eq!(frame.cell, Some([[0.4, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.6]]));
    assert_eq!(frame.periodic, Some([true, false, true]));
    assert_eq!((frame.step, frame.time, frame.title.as_str()), (Some(12), Some(0.5), "hello"));
    let quoted = |s: &str| InfoValue::Quoted(s.into());
    let array = |s: &str| InfoValue::Array(s.into());
    let expected = [
        ("flag", InfoValue::Flag),
        ("two words", quoted(r#"x "y" 'z'"#)),
        ("path", quoted("C:\\a \"b\"\nc")),
        ("old", array("{1 2 3}")),
        ("nested", array(r#"[["a]", "b"], [1, 2]]"#)),
        ("stress", InfoValue::Bare("3".into())),
    ];
    assert_eq!(frame.info, expected.map(|(k, v)| (k.to_string(), v)));
    assert_eq!(frame.column("Z").unwrap().data, ColumnData::Integer(vec![6]));
    let again = written(std::slice::from_ref(&frame), Format::Xyz, Precision::default());
    assert_eq!(read_all(&again, Format::Xyz).unwrap(), [frame]);
}

#[test]
fn sentences_are_titles() {
    for title in ["i = 0, time = 0.000, E = -8.8", "water", "", "Properties of water", "a=1 and b=2", "x=\"1"]
    {
        let file = format!("1\n{title}\nO 0 0 0\n");
        let frame = read_structure_bytes(file.as_bytes(), Format::Xyz, Which::First, NM).unwrap();
        assert_eq!((frame.title.as_str(), frame.info.len()), (title, 0));
    }
    let file = b"1\nstep=7 T=300\nO 0 0 0\n";
    let frame = read_structure_bytes(file, Format::Xyz, Which::First, NM).unwrap();
    assert_eq!((frame.step, frame.info("T").and_then(InfoValue::as_f64)), (Some(7), Some(300.0)));
}

#[test]
fn velocities_come_in_several_units() {
    let read = |head: &str, values: &str| {
        let file = format!("1\nProperties=species:S:1:pos:R:3:{head}\nO 0 0 0 {values}\n");
        read_structure_bytes(file.as_bytes(), Format::Xyz, Which::First, NM).unwrap()
    };
    let velocity = |head: &str| read(head, "0.1 0.2 0.3").velocities.map(|v| v[0]);
    assert_eq!(velocity("vel:R:3 velocity_unit=\"A/ps\""), Some([0.01, 0.02, 0.03]));
    assert_eq!(velocity("velo:R:3 velocity_unit=A/fs"), Some([10.0, 20.0, 30.0]));
    assert_eq!(velocity("velocities:R:3 velocity_unit=nm/ps"), Some([0.1, 0.2, 0.3]));
    assert_eq!(velocity("vel:R:3 units=lj"), Some([0.1, 0.2, 0.3]));
    // 1 √(eV/u) = √(1.602176634e-19 J / 1.66053906660e-27 kg) = 9822.694750 m/s = 9.822694750 nm/ps.
    let ase = velocity("vel:R:3 velocity_unit=ase").unwrap();
    approx::assert_relative_eq!(ase[0], 0.982_269_475_0, max_relative = 1e-9);
    let momenta = velocity("momenta:R:3").unwrap();
    approx::assert_relative_eq!(momenta[2], 0.3 * 9.822_694_750 / 15.999, max_relative = 1e-9);
    let with_mass = read("momenta:R:3:masses:R:1", "0.1 0.2 0.3 2").velocities.unwrap();
    approx::assert_relative_eq!(with_mass[0][1], 0.982_269_475_0, max_relative = 1e-9);

    let unknown = read("vel:R:3", "0.1 0.2 0.3");
    assert_eq!((unknown.velocities, unknown.columns.len(), unknown.remarks.len()), (None, 1, 1));
    let file = b"1\nProperties=species:S:1:pos:R:3:momenta:R:3\nOW 0 0 0 1 1 1\n";
    let error = read_structure_bytes(file, Format::Xyz, Which::First, NM).unwrap_err();
    assert_eq!(error.line(), Some(2));
}

#[test]
fn reduced_units_are_plain_numbers() {
    let frame = Frame {
        units: FrameUnits::Reduced,
        atoms: vec![AtomLabel::new("A")],
        positions: vec![[0.1, 0.2, 1.0 / 3.0]],
        velocities: Some(vec![[1.0, -2.0, 0.7]]),
        forces: Some(vec![[0.3, 0.0, -1e-9]]),
        cell: Some([[9.0, 0.0, 0.0], [0.0, 9.0, 0.0], [0.0, 0.0, 9.0]]),
        energy: Some(-1.1),
        ..Frame::default()
    };
    let bytes = written(std::slice::from_ref(&frame), Format::Xyz, Precision::default());
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(
        text.contains(" units=\"lj\"") && text.contains("\nA 0.1 0.2 0.3333333333333333 1.0 -2.0 0.7 "),
        "{text}"
    );
    assert_eq!(read_all(&bytes, Format::Xyz).unwrap(), std::slice::from_ref(&frame));
    // A plain file is what the caller says.
    let file = b"1\nargon\nAr 0.1 0.2 0.3\n";
    let plain = read_structure_bytes(file, Format::Xyz, Which::First, FrameUnits::Reduced).unwrap();
    assert_eq!((plain.units, plain.positions[0]), (FrameUnits::Reduced, [0.1, 0.2, 0.3]));
}

#[test]
fn atomic_numbers_name_atoms() {
    let file = b"2\nProperties=Z:I:1:pos:R:3\n8 0 0 0\n0 1 0 0\n";
    let frame = read_structure_bytes(file, Format::Xyz, Which::First, NM).unwrap();
    assert_eq!(frame.atoms, [AtomLabel::new("O"), AtomLabel::new("X")]);
    let file = b"1\nProperties=Z:I:1:pos:R:3\n119 0 0 0\n";
    assert!(read_structure_bytes(file, Format::Xyz, Which::First, NM).is_err());
}

#[test]
fn errors_name_line_and_column() {
    let message = |file: &str, format| read_all(file.as_bytes(), format).unwrap_err().to_string();
    let xyz = |file| message(file, Format::Xyz);
    assert_eq!(
        xyz("2\n\nO 0 0 0\n"),
        "line 4: the file ends after 1 of the 2 atoms that the frame announces"
    );
    assert_eq!(xyz("1\n\nO 0 0\n"), "line 3: column `pos`: expected 3 values, found 2");
    assert_eq!(xyz("1\n\nO 0 x 0\n"), "line 3, column 5: column `pos`: expected a number, found `x`");
    assert_eq!(xyz("1\n\nO 0 0 nan\n"), "line 3, column 7: column `pos`: expected a number, found `nan`");
    assert_eq!(xyz("x\n"), "line 1: expected the number of atoms, found `x`");
    assert_eq!(xyz("1\n\nO 0 0 0\nrest\n"), "line 4: expected the number of atoms, found `rest`");
    assert_eq!(
        xyz("1\nLattice=\"1 2 3\" Properties=species:S:1:pos:R:3\nO 0 0 0\n"),
        "line 2: Lattice must have 9 numbers (vectors a, b, c), found 3"
    );
    assert_eq!(xyz("1\nProperties=pos:R:3 a=\"x\nO 0 0 0\n"), "line 2, column 22: this quote is not closed");
    assert_eq!(xyz("1\n"), "line 2: the file ends before the comment line");

    let gro = |file: &str| message(file, Format::Gro);
    let atom = "    1SOL     OW    1   0.126   1.624   1.679\n";
    assert_eq!(
        gro("t\n2\n"),
        "line 3: the file ends after 0 of the 2 atoms that line 2 of the frame announces"
    );
    assert_eq!(gro(&format!("t\n1\n{atom}")), "line 4: the file ends before the line with the cell");
    assert_eq!(
        gro(&format!("t\n1\n{}1.0 1.0 1.0\n", atom.replace("  1.679", ""))),
        "line 3: atom 1 of 1: expected 3 coordinates, found 2"
    );
    assert_eq!(
        gro(&format!("t\n1\n{}1.0 1.0 1.0\n", atom.replace("1.624", "1.6x4"))),
        "line 3, column 29: atom 1 of 1: expected a number of 8 columns, found `   1.6x4`"
    );
    assert_eq!(
        gro(&format!("t\n1\n{atom}1.0 1.0\n")),
        "line 4: expected the cell, 3 or 9 numbers, found `1.0 1.0`"
    );

    let path = std::env::temp_dir().join(format!("md-formats-{}.xyz", std::process::id()));
    fs::write(&path, "1\n\nO 0 0\n").unwrap();
    let error = read_structure(&path, None, Which::First, NM).unwrap_err();
    fs::remove_file(&path).unwrap();
    assert!(error.to_string().ends_with(".xyz:3: column `pos`: expected 3 values, found 2"), "{error}");
    assert_eq!(error.path(), Some(path.as_path()));
    assert!(
        read_structure(&path, None, Which::First, NM).unwrap_err().to_string().contains("cannot be read")
    );
    assert!(
        read_structure("a.doc", None, Which::First, NM)
            .unwrap_err()
            .to_string()
            .contains("`doc` is no known")
    );
}

#[test]
fn frames_are_picked() {
    let file = b"1\na\nO 0 0 0\n1\nb\nO 1 0 0\n\n1\nc\nO 2 0 0\n\n\n";
    let pick = |which| read_structure_bytes(file, Format::Xyz, which, NM);
    let title = |which| pick(which).unwrap().title;
    assert_eq!([title(Which::First), title(Which::Index(1)), title(Which::Last)], ["a", "b", "c"]);
    assert_eq!(
        pick(Which::Index(3)).unwrap_err().to_string(),
        "there is no frame 3 (from 0): the file has 3"
    );
    for format in Format::ALL {
        let error = read_structure_bytes(b"", format, Which::First, NM).unwrap_err();
        assert_eq!(error.to_string(), "there is no frame in the file");
    }
}

#[test]
fn gro_counts_beyond_five_digits() {
    let n = 100_002;
    let mut frame = Frame { title: "many".into(), positions: vec![[0.5; 3]; n], ..Frame::default() };
    for i in 0..n {
        let residue = Some(Residue { number: (i / 3) as i64, name: "SOL".into() });
        frame.atoms.push(AtomLabel { name: "OW".into(), residue });
    }
    let bytes = written(std::slice::from_ref(&frame), Format::Gro, Precision::default());
    assert_eq!(read_all(&bytes, Format::Gro).unwrap(), [frame]);
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.lines().nth(1 + 100_000).unwrap().starts_with("33333SOL     OW    0 "), "wraps");
}

#[test]
fn what_a_format_cannot_hold_is_refused_and_nothing_is_written() {
    let atom = |name: &str, x: f64| Frame {
        atoms: vec![AtomLabel::new(name)],
        positions: vec![[x, 0.0, 0.0]],
        ..Frame::default()
    };
    let fails = |frame: &Frame, format| {
        let mut bytes = Vec::new();
        let error = writer(&mut bytes, format, Precision::default()).write(frame).unwrap_err();
        assert_eq!((error.kind(), bytes.len()), (std::io::ErrorKind::InvalidInput, 0), "{error}");
    };
    fails(&atom("O W", 0.0), Format::Xyz);
    fails(&atom("", 0.0), Format::Xyz);
    fails(&atom("", 0.0), Format::Gro);
    fails(&atom("TOOLONG", 0.0), Format::Gro);
    fails(&atom("O", -1000.0), Format::Gro);
    for format in Format::ALL {
        fails(&atom("O", f64::NAN), format);
        fails(&Frame { velocities: Some(Vec::new()), ..atom("O", 0.0) }, format);
    }
    let far = |x: f64| Frame {
        positions: (0..10).map(|i| [x * f64::from(i), 0.0, 0.0]).collect(),
        ..Frame::default()
    };
    fails(&far(1e6), Format::Xtc);
    fails(&far(f64::INFINITY), Format::Xtc);
}

// ---- Cutting trajectories ----

#[test]
fn a_scan_finds_where_to_cut() {
    let frame = |step: u64| Frame {
        title: "run".into(),
        step: Some(step),
        time: Some(step as f64 * 0.5),
        atoms: vec![AtomLabel::new("Ar"); 12],
        positions: (0..12).map(|i| [f64::from(i) * 0.3 + step as f64 * 1e-3, 0.1, 0.2]).collect(),
        ..Frame::default()
    };
    let all: Vec<Frame> = [0, 10, 20, 30].map(frame).into();
    for format in Format::ALL {
        let ends: Vec<usize> =
            (0..=4).map(|n| written(&all[..n], format, Precision::default()).len()).collect();
        let bytes = written(&all, format, Precision::default());
        for cut in 0..=bytes.len() {
            let found = scan(&bytes[..cut], format);
            let complete = ends[1..].iter().filter(|&&e| e <= cut).count();
            assert_eq!(found.frames.len(), complete, "{format} cut at {cut}");
            assert_eq!(found.end(), ends[complete] as u64);
            assert_eq!(found.rest.is_some(), cut != ends[complete], "{format} cut at {cut}");
            let steps: Vec<_> = found.frames.iter().map(|f| f.step.unwrap()).collect();
            assert_eq!(steps, [0, 10, 20, 30][..complete]);
        }
        let found = scan(&bytes[..], format);
        for (step, n) in [(0, 1), (9, 1), (10, 2), (25, 3), (30, 4), (1000, 4)] {
            assert_eq!(found.end_of_step(step), Some(ends[n] as u64));
        }
        // Cut, go on, and the file is the same.
        let path = std::env::temp_dir().join(format!("md-formats-cut-{}.{format}", std::process::id()));
        fs::write(&path, &bytes[..bytes.len() - 5]).unwrap();
        let end = scan_file(&path, format).unwrap().end_of_step(20).unwrap();
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_len(end).unwrap();
        writer(&mut file, format, Precision::default()).write(&all[3]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes, "{format}");
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn xtc_steps_pass_their_32_bits() {
    let frame = |step| Frame { step: Some(step), positions: vec![[0.0; 3]], ..Frame::default() };
    let steps = [4_000_000_000, 4_294_967_295, 4_294_967_296, 5_000_000_000, 8_000_000_000, 8_589_934_599];
    let bytes = written(&steps.map(frame), Format::Xtc, Precision::default());
    let found: Vec<u64> = scan(&bytes[..], Format::Xtc).frames.iter().map(|f| f.step.unwrap()).collect();
    assert_eq!(found, steps);
}

// ---- XTC against molly ----

/// Water molecules on a lattice, slightly disordered: what XTC was made for.
fn water(n: usize) -> Frame {
    let mut seed = 1_u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
    };
    let mut positions = Vec::new();
    for x in 0..n {
        for y in 0..n {
            for z in 0..n {
                let o = [x, y, z].map(|k| 0.31 * k as f64 + 0.1 * random());
                positions.push(o);
                for _ in 0..2 {
                    let d = [random(), random(), random()];
                    let length = d.iter().map(|x| x * x).sum::<f64>().sqrt();
                    positions.push([0, 1, 2].map(|k| o[k] + 0.1 * d[k] / length));
                }
            }
        }
    }
    Frame { step: Some(3), time: Some(1.5), positions, ..Frame::default() }
}

#[test]
fn xtc_is_as_small_as_that_of_others() {
    let frame = water(12);
    let ours = written(std::slice::from_ref(&frame), Format::Xtc, Precision::default());
    let theirs = {
        let positions = frame.positions.as_flattened().iter().map(|&x| x as f32).collect();
        let mut out = molly::XTCWriter::new(Vec::new());
        out.write_frame(&molly::Frame { step: 3, time: 1.5, positions, ..Default::default() }).unwrap();
        out.file
    };
    let per_atom = |bytes: &[u8]| bytes.len() as f64 / frame.len() as f64;
    println!("bytes an atom: ours {:.3}, molly's {:.3}", per_atom(&ours), per_atom(&theirs));
    assert!(ours.len() <= theirs.len() + 4);
    let read = read_all(&ours, Format::Xtc).unwrap();
    assert_eq!(molly(&ours), read);
    close(&read[0].positions, &frame.positions, 0.000_500_001, "position");
    let theirs = read_all(&theirs, Format::Xtc).unwrap();
    close(&theirs[0].positions, &frame.positions, 0.000_501, "molly's position");
}

// ---- Properties ----

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z][A-Za-z0-9+*'-]{0,4}"
}

fn vector3(x: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = [f64; 3]> {
    [x.clone(), x.clone(), x]
}

fn any_number() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![-10.0..10.0, prop::num::f64::NORMAL, prop::num::f64::SUBNORMAL, prop::num::f64::ZERO]
}

/// Frames with everything in them that numbers and names can be.
fn frame(x: impl Strategy<Value = f64> + Clone + 'static) -> impl Strategy<Value = Frame> {
    (0..30_usize).prop_flat_map(move |n| {
        let vectors = || prop::collection::vec(vector3(x.clone()), n);
        let values = || prop::collection::vec(x.clone(), n);
        let label = (name(), 0..100_000_i64, name()).prop_map(|(name, number, residue)| AtomLabel {
            name,
            residue: Some(Residue { number, name: residue }),
        });
        (
            ("[a-z]([ -~]{0,20}[a-z])?", any::<Option<u64>>(), prop::option::of(0.0..1e6)),
            prop::option::of([vector3(0.1..9.0), vector3(0.1..9.0), vector3(0.1..9.0)]),
            any::<Option<[bool; 3]>>(),
            prop::collection::vec(label, n),
            vectors(),
            prop::option::of(vectors()),
            prop::option::of(values()),
            prop::option::of(values()),
        )
            .prop_map(|(head, cell, periodic, atoms, positions, velocities, masses, charges)| {
                Frame {
                    title: head.0,
                    step: head.1,
                    time: head.2,
                    cell,
                    periodic,
                    atoms,
                    positions,
                    velocities,
                    masses,
                    charges,
                    ..Frame::default()
                }
            })
    })
}

fn info() -> impl Strategy<Value = (String, InfoValue)> {
    let value = prop_oneof![
        Just(InfoValue::Flag),
        "[A-Za-z0-9.+-]{1,8}".prop_map(InfoValue::Bare),
        "[ -~\n\r\téß]{0,12}".prop_map(InfoValue::Quoted),
        "\\PC{0,6}".prop_map(InfoValue::Quoted),
        "\\[([0-9 ,]|\\[1, 2\\]|\"[a-z\\]=' ]*\"){0,4}\\]".prop_map(InfoValue::Array),
        "\\{[0-9 .]{0,8}\\}".prop_map(InfoValue::Array),
    ];
    (prop_oneof!["k[A-Za-z0-9_-]{0,6}", "k[ -~]{0,6}"], value)
}

fn column(n: usize) -> impl Strategy<Value = Column> {
    let data = move |width: usize| {
        let count = n * width;
        prop_oneof![
            prop::collection::vec(any_number(), count).prop_map(ColumnData::Real),
            prop::collection::vec(any::<i64>(), count).prop_map(ColumnData::Integer),
            prop::collection::vec("[!-~é]{1,5}", count).prop_map(ColumnData::Text),
            prop::collection::vec(any::<bool>(), count).prop_map(ColumnData::Logical),
        ]
        .prop_map(move |data| (width, data))
    };
    (1..4_usize).prop_flat_map(data).prop_map(|(width, data)| Column { name: String::new(), width, data })
}

fn full_frame() -> impl Strategy<Value = Frame> {
    let more = |frame: Frame| {
        let n = frame.len();
        (Just(frame), prop::collection::vec(column(n), 0..3), prop::collection::vec(info(), 0..5))
    };
    frame(any_number()).prop_flat_map(more).prop_map(|(mut frame, columns, info)| {
        frame.columns = columns;
        for (i, c) in frame.columns.iter_mut().enumerate() {
            c.name = format!("c{i}");
        }
        frame.info = info;
        frame
    })
}

/// A valid file with some bytes changed, inserted or removed.
fn broken(bytes: Vec<u8>, edits: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = bytes;
    for &(at, kind, byte) in edits {
        let at = at % (bytes.len() + 1);
        match kind % 3 {
            0 if at < bytes.len() => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

/// Reads and scans whatever it is; what is read must be whole.
fn digest(bytes: &[u8], format: Format) {
    for frame in frames(bytes, format, NM) {
        match frame {
            Ok(frame) => frame.check_lengths().unwrap(),
            Err(e) => assert!(e.line().is_some() || e.frame().is_some(), "{e}"),
        }
    }
    let _ = scan(bytes, format);
}

fn precision(decimals: usize) -> Precision {
    Precision { decimals, xtc: 10_f32.powi(decimals as i32), ..Precision::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn xyz_keeps_every_bit(all in prop::collection::vec(full_frame(), 0..4)) {
        let bytes = written(&all, Format::Xyz, Precision::default());
        let mut read = read_all(&bytes, Format::Xyz).unwrap();
        read.iter_mut().for_each(|f| f.remarks.clear());
        prop_assert_eq!(&read, &all);
        let found = scan(&bytes[..], Format::Xyz);
        prop_assert_eq!(found.frames.len(), all.len());
        prop_assert_eq!(found.rest, None);
        prop_assert!(found.frames.iter().zip(&all).all(|(m, f)| m.step == f.step));
    }

    #[test]
    fn xyz_keeps_its_digits(one in frame(-99.0..99.0), digits in 0..9_usize) {
        let mut out = XyzWriter::new(Vec::new(), Digits::Fixed(digits));
        out.write(&one).unwrap();
        let read = read_all(&out.into_inner(), Format::Xyz).unwrap().remove(0);
        let limit = 0.1 * 0.500_001 * 0.1_f64.powi(digits as i32);
        close(&read.positions, &one.positions, limit, "position");
        if let Some(v) = &one.velocities {
            close(read.velocities.as_ref().unwrap(), v, limit, "velocity");
        }
        prop_assert_eq!(read.cell, one.cell);
    }

    #[test]
    fn forces_and_energy_come_back_through_electronvolts(
        forces in prop::collection::vec(vector3(-1e4..1e4), 0..9), energy in -1e6..1e6)
    {
        let one = Frame {
            positions: vec![[0.0; 3]; forces.len()],
            forces: Some(forces),
            energy: Some(energy),
            ..Frame::default()
        };
        let bytes = written(std::slice::from_ref(&one), Format::Xyz, Precision::default());
        let read = read_all(&bytes, Format::Xyz).unwrap().remove(0);
        prop_assert!((read.energy.unwrap() - energy).abs() <= 4.0 * f64::EPSILON * energy.abs());
        for (r, f) in read.forces.unwrap().iter().zip(one.forces.as_ref().unwrap()) {
            prop_assert!((0..3).all(|k| (r[k] - f[k]).abs() <= 4.0 * f64::EPSILON * f[k].abs()));
        }
    }

    #[test]
    fn gro_keeps_its_digits(all in prop::collection::vec(frame(-99.0..99.0), 0..3), decimals in 1..10_usize) {
        let bytes = written(&all, Format::Gro, precision(decimals));
        let read = read_all(&bytes, Format::Gro).unwrap();
        prop_assert_eq!(read.len(), all.len());
        let limit = 0.500_001 * 0.1_f64.powi(decimals as i32);
        for (read, one) in read.iter().zip(&all) {
            close(&read.positions, &one.positions, limit, "position");
            prop_assert_eq!(&read.atoms, &one.atoms);
            match &one.velocities {
                Some(v) if !v.is_empty() => {
                    close(read.velocities.as_ref().unwrap(), v, 0.1 * limit, "velocity");
                }
                _ => prop_assert_eq!(&read.velocities, &None),
            }
            prop_assert_eq!(read.cell.is_some(), one.cell.is_some());
            if let (Some(read), Some(cell)) = (read.cell, one.cell) {
                close(&read, &cell, 0.500_001e-5, "cell");
            }
            prop_assert!(read.remarks.is_empty());
        }
        // What was read is on the grid of the file, and from now on exact.
        let again = written(&read, Format::Gro, precision(decimals));
        prop_assert_eq!(read_all(&again, Format::Gro).unwrap(), read);
        prop_assert_eq!(scan(&bytes[..], Format::Gro).frames.len(), all.len());
    }

    #[test]
    fn xtc_keeps_its_grid(
        all in prop::collection::vec(prop_oneof![frame(-99.0..99.0), frame(-0.3..0.3), frame(-2e4..2e4)], 0..3),
        decimals in 1..5_usize)
    {
        let bytes = written(&all, Format::Xtc, precision(decimals));
        let read = read_all(&bytes, Format::Xtc).unwrap();
        prop_assert_eq!(read.len(), all.len());
        for (read, one) in read.iter().zip(&all) {
            let half = 0.500_001 * 0.1_f64.powi(decimals as i32);
            let limit = if one.len() <= 9 { 1e-7 * 2e4 } else { half };
            close(&read.positions, &one.positions, limit, "position");
            prop_assert_eq!(read.step, Some(one.step.unwrap_or(0) & 0xffff_ffff));
            prop_assert_eq!(read.time, Some(f64::from(one.time.unwrap_or(0.0) as f32)));
            prop_assert_eq!(read.cell, one.cell.map(|c| c.map(|v| v.map(|x| f64::from(x as f32)))));
        }
        let again = written(&read, Format::Xtc, precision(decimals));
        prop_assert_eq!(read_all(&again, Format::Xtc).unwrap(), read);
    }

    #[test]
    fn molly_reads_our_xtc(steps in prop::collection::vec(vector3(-0.4..0.4), 10..80), jump in 0..20_usize) {
        // A walk with jumps makes runs of all lengths, and small sizes that grow and shrink.
        let mut at = [1.0; 3];
        let positions = steps.iter().enumerate().map(|(i, d)| {
            let scale = if i % (jump + 2) == 0 { 30.0 } else { [0.01, 0.1, 1.0][i / 9 % 3] };
            at = [0, 1, 2].map(|k| at[k] + scale * d[k]);
            at
        });
        let one = Frame { step: Some(1), positions: positions.collect(), ..Frame::default() };
        let bytes = written(&[one.clone(), one], Format::Xtc, Precision::default());
        prop_assert_eq!(molly(&bytes), read_all(&bytes, Format::Xtc).unwrap());
    }

    #[test]
    fn a_cut_file_is_never_taken_for_a_whole_one(
        all in prop::collection::vec(frame(-99.0..99.0), 1..3), at in any::<prop::sample::Index>())
    {
        for format in Format::ALL {
            let bytes = written(&all, format, Precision::default());
            let cut = at.index(bytes.len());
            let ends: Vec<u64> = scan(&bytes[..], format).frames.iter().map(|f| f.end).collect();
            let frames: Vec<_> = frames(&bytes[..cut], format, NM).collect();
            let good = frames.iter().filter(|f| f.is_ok()).count();
            for (read, one) in frames.iter().flatten().zip(&all) {
                prop_assert_eq!(read.len(), one.len());
            }
            // A text file may lack its last newline, so nobody can tell whether its last number is whole.
            let last_line = bytes[cut..].iter().position(|&b| b == b'\n').map(|i| (cut + i + 1) as u64);
            let in_last_line = format != Format::Xtc && last_line.is_some_and(|end| ends.contains(&end));
            let complete = ends.iter().filter(|&&e| e <= cut as u64).count();
            if cut == 0 || ends.contains(&(cut as u64)) {
                prop_assert_eq!((good, frames.len()), (complete, complete));
            } else if !in_last_line {
                prop_assert_eq!((good, frames.len()), (complete, complete + 1));
                let error = frames.last().unwrap().as_ref().unwrap_err();
                prop_assert!(error.line().is_some() || error.frame().is_some());
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[0-9 .\n:=\"'\\[\\]{}A-Za-z-]{0,200}") {
        for format in Format::ALL {
            digest(&bytes, format);
            digest(text.as_bytes(), format);
            digest(format!("3\n{text}").as_bytes(), format);
            digest(format!("1\nProperties={text}").as_bytes(), format);
            digest(format!("title\n2\n{text}").as_bytes(), format);
        }
    }

    #[test]
    fn no_broken_file_panics(
        all in prop::collection::vec(full_frame(), 1..3),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6))
    {
        digest(&broken(written(&all, Format::Xyz, Precision::default()), &edits), Format::Xyz);
    }

    #[test]
    fn no_broken_gro_or_xtc_file_panics(
        all in prop::collection::vec(frame(-99.0..99.0), 1..3),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..6))
    {
        let mut out = GroWriter::new(Vec::new(), 3);
        all.iter().for_each(|f| out.write(f).unwrap());
        digest(&broken(out.into_inner(), &edits), Format::Gro);
        let mut out = XtcWriter::new(Vec::new(), 1000.0);
        all.iter().for_each(|f| out.write(f).unwrap());
        let bytes = out.into_inner();
        digest(&broken(bytes.clone(), &edits), Format::Xtc);
        // Changes only, so that the frame stays where it is and its inside is what is wrong.
        let changes: Vec<_> = edits.iter().map(|&(at, _, b)| (at, 0, b)).collect();
        digest(&broken(bytes, &changes), Format::Xtc);
    }
}
