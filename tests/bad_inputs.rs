//! Every mistake in an input gets one clear message, with its place and what to do about it.
//!
//! `tests/bad_inputs/*.toml` are inputs with one mistake each (or one family of mistakes), and `warnings/*.toml`
//! those that are odd but accepted. Each begins with comment lines for this test:
//!
//! ```text
//! #? kind: unknown key            what kind of mistake it is (see KINDS)
//! #? key: pair.*.cutoff           a key that the mistake is about, as `md explain input` has it; any number
//! #? set: system.cell=3           an override, as `--set` has it; any number
//! #| error: …                     the message, exactly as it is shown
//! ```
//!
//! With `MD_BLESS=1` the messages found are written into the files. They are to be read before they are kept: is it
//! one clear message, is the caret under the right word, does it say what to do?

use md::input::plan::Plan;
use md::input::reader::{Document, Presence};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "tests/bad_inputs";

/// The kinds of mistakes, of each of which there must be at least two cases. (What can only go wrong while a run
/// writes, such as an existing output or a full disk, is tested where runs are.)
const KINDS: [&str; 14] = [
    "syntax",
    "unknown key",
    "missing key",
    "wrong type",
    "wrong dimension",
    "wrong unit",
    "missing file",
    "broken structure",
    "impossible value",
    "missing parameters",
    "contradiction",
    "unknown name",
    "override",
    "warning",
];

/// What a file says about itself.
struct Case {
    path: PathBuf,
    kind: String,
    keys: Vec<String>,
    overrides: Vec<(String, String)>,
    expected: String,
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    files.sort();
    files
}

fn case(path: &Path) -> Case {
    let text = std::fs::read_to_string(path).unwrap();
    let mut case = Case {
        path: path.to_path_buf(),
        kind: String::new(),
        keys: Vec::new(),
        overrides: Vec::new(),
        expected: String::new(),
    };
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("#|") {
            case.expected.push_str(line.strip_prefix(' ').unwrap_or(line));
            case.expected.push('\n');
        } else if let Some(line) = line.strip_prefix("#? ") {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim();
            match name {
                "kind" => case.kind = value.to_owned(),
                "key" => case.keys.push(value.to_owned()),
                "set" => {
                    let (key, value) = value.split_once('=').expect("`#? set: key=value`");
                    case.overrides.push((key.to_owned(), value.to_owned()));
                }
                _ => panic!("{}: `#? {name}` means nothing", path.display()),
            }
        }
    }
    case
}

/// What the program says about the input: its errors, or the warnings with which it is accepted.
fn found(case: &Case) -> (bool, String) {
    let read = || Plan::read(&case.path, &case.overrides, &md::catalog());
    let (accepted, said) = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(plan)) => (true, plan.warnings.render(false)),
        Ok(Err(diagnostics)) => (false, diagnostics.render(false)),
        Err(_) => panic!("{}: the program panics", case.path.display()),
    };
    let folder = format!("{}/", case.path.parent().unwrap().display());
    let said: Vec<&str> = said.lines().map(str::trim_end).collect();
    (accepted, said.join("\n").replace(&folder, ""))
}

/// Writes the message into the file; the lines of the file that it shows move with it.
fn bless(path: &Path) {
    for _ in 0..5 {
        let now = case(path);
        let (_, said) = found(&now);
        if said == now.expected.trim_end() {
            return;
        }
        let text = std::fs::read_to_string(path).unwrap();
        let (mut head, mut body) = (String::new(), String::new());
        for line in text.split_inclusive('\n') {
            match line {
                l if l.starts_with("#? ") => head.push_str(l),
                l if l.starts_with("#|") => {}
                l => body.push_str(l),
            }
        }
        for line in said.lines() {
            head.push_str(format!("#| {line}").trim_end());
            head.push('\n');
        }
        std::fs::write(path, head + &body).unwrap();
    }
}

fn check_folder(folder: &Path, accepted: bool) {
    let mut failures = String::new();
    let files = toml_files(folder);
    for path in &files {
        if std::env::var_os("MD_BLESS").is_some() {
            bless(path);
        }
        let case = case(path);
        let (was_accepted, said) = found(&case);
        let expected = case.expected.trim_end();
        let name = path.display();
        if !KINDS.contains(&case.kind.as_str()) {
            failures.push_str(&format!("{name}: `{}` is no kind of mistake\n\n", case.kind));
        }
        if was_accepted != accepted {
            let what = if was_accepted { "accepted" } else { "refused" };
            failures.push_str(&format!("{name}: is {what}\n{said}\n\n"));
        } else if expected.is_empty() {
            failures.push_str(&format!("{name}: expects no message\n{said}\n\n"));
        } else if said != expected {
            failures.push_str(&format!("{name}: expected\n{expected}\nfound\n{said}\n\n"));
        }
    }
    assert!(!files.is_empty(), "{} holds no cases", folder.display());
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn every_bad_input_has_its_message() {
    check_folder(Path::new(FOLDER), false);
}

#[test]
fn every_odd_input_has_its_warning() {
    check_folder(&Path::new(FOLDER).join("warnings"), true);
}

/// At the command line the same message comes out, with exit status 2, and nothing is made or touched.
#[test]
fn the_command_says_the_same_and_makes_nothing() {
    let output = std::env::temp_dir().join(format!("md-bad-inputs-{}", std::process::id()));
    for path in toml_files(Path::new(FOLDER)) {
        let case = case(&path);
        let mut command = Command::new(env!("CARGO_BIN_EXE_md"));
        command.arg("run").arg(&path).arg("--output").arg(&output);
        for (key, value) in &case.overrides {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        let ended = command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).replace(&format!("{FOLDER}/"), "");
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        let (name, said) = (path.display(), said.join("\n"));
        assert_eq!(ended.status.code(), Some(2), "{name}: {said}");
        assert!(ended.stdout.is_empty(), "{name} prints on standard output");
        assert!(said.contains(case.expected.trim_end()), "{name}: expected\n{}found\n{said}", case.expected);
        assert!(!output.exists(), "{name} makes a folder");
    }
}

fn all_cases() -> Vec<Case> {
    let mut files = toml_files(Path::new(FOLDER));
    files.extend(toml_files(&Path::new(FOLDER).join("warnings")));
    files.iter().map(|path| case(path)).collect()
}

#[test]
fn every_kind_of_mistake_has_two_cases() {
    let cases = all_cases();
    for kind in KINDS {
        let count = cases.iter().filter(|c| c.kind == kind).count();
        assert!(count >= 2, "of the kind `{kind}` there are {count} cases");
    }
}

/// Whether a key is a parameter (or the set of parameters) of one energy. There are hundreds of these, all read
/// by one function: [`every_key_refuses_what_it_cannot_be`] covers each of them, and the files cover some.
fn is_parameter(path: &str) -> bool {
    let energies = md::catalog();
    energies.entries().iter().any(|e| {
        let table = format!("{}.{}.", e.kind.key(), e.about.name);
        let Some(rest) = path.strip_prefix(&table) else { return false };
        let last = rest.rsplit('.').next().unwrap_or(rest);
        e.about.params.iter().any(|p| p.name == last) && last != "cutoff"
    })
}

/// The key, with the name of the energy left open: what is said of all energies of a kind is covered once.
fn of_kind(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('.').collect();
    let kinds = md::catalog::EnergyKind::ALL.map(|k| k.key());
    if parts.len() > 1 && kinds.contains(&parts[0]) {
        parts[1] = "*";
    }
    parts.join(".")
}

/// Each key that stands in the documentation is the subject of a file, but for the parameters of energies.
#[test]
fn every_key_has_a_case() {
    let known: BTreeSet<String> = md::input::keys(&md::catalog())
        .iter()
        .filter(|k| !is_parameter(&k.path))
        .map(|k| of_kind(&k.path))
        .collect();
    let mut covered = BTreeSet::new();
    for case in all_cases() {
        for key in case.keys {
            assert!(
                known.contains(&key),
                "{}: `{key}` is no key; known are\n{}",
                case.path.display(),
                known.iter().cloned().collect::<Vec<_>>().join("\n")
            );
            covered.insert(key);
        }
    }
    let missing: Vec<&String> = known.difference(&covered).collect();
    assert!(missing.is_empty(), "no case is about {missing:#?}");
}

/// The arrays of tables that a key stands in, but for those of every input, with a table each.
fn inner_arrays(path: &str) -> Vec<(String, String)> {
    let ends = path.match_indices("[]").map(|(at, _)| path[..at].replace("[]", "[0]"));
    let others = ends.filter(|name| !["stage", "output.trajectory"].contains(&name.as_str()));
    others.map(|name| (name, "[{}]".to_owned())).collect()
}

/// Every key in the documentation, given something that no key can be, says so: its path, what is expected, and
/// what was found, with a caret under the value.
#[test]
fn every_key_refuses_what_it_cannot_be() {
    let catalog = md::catalog();
    let mut count = 0;
    for key in md::input::keys(&catalog) {
        let path = key.path.replace("[]", "[0]").replace('*', "A-A");
        let text = "stage = [{}]\noutput.trajectory = [{}]\n";
        // a number where a table is expected, and a nest of arrays everywhere else
        let wrong = match key.kind.as_str() {
            "a table, or an array of tables" => "[7]",
            kind if kind.contains("table") => "7",
            _ => "[[[[1979-05-27]]]]",
        };
        let mut set = inner_arrays(&key.path);
        set.push((path.clone(), wrong.to_owned()));
        let document = match Document::parse("in.toml", text, &set) {
            Ok(document) => document,
            Err(found) => panic!("{path}: {found}"),
        };
        let Err(found) = Plan::of(&document, &catalog) else { panic!("{path} = {wrong} is accepted") };
        let about = found.iter().find(|d| {
            let caret = d.primary.as_ref().is_some_and(|(place, _)| place.source.path().is_none());
            caret && d.message.starts_with(&format!("`{path}"))
        });
        let Some(about) = about else { panic!("{path} = {wrong}: no message about it in\n{found}") };
        assert!(about.message.contains("expected"), "{about}");
        count += 1;
    }
    assert!(count > 200, "{count}");
}

/// A key that must be written is asked for, with an example that is then accepted.
#[test]
fn every_required_key_is_asked_for() {
    let catalog = md::catalog();
    let required: Vec<String> = md::input::keys(&catalog)
        .iter()
        .filter(|k| k.presence == Presence::Required && k.path.contains('.'))
        .map(|k| k.path.clone())
        .collect();
    assert!(required.len() > 50);
    for path in required {
        let (table, name) = path.rsplit_once('.').unwrap();
        let table = table.replace("[]", "[0]").replace('*', "A-A");
        let text = "stage = [{}]\noutput.trajectory = [{}]\n";
        let mut set = inner_arrays(&path);
        set.push((table.clone(), "{}".to_owned()));
        let document = Document::parse("in.toml", text, &set).unwrap();
        let Err(found) = Plan::of(&document, &catalog) else { panic!("{path} is not needed") };
        let within = if table.ends_with(']') { table.clone() } else { format!("[{table}]") };
        let message = format!("missing key `{name}` in {within}");
        let asked = found.iter().find(|d| d.message == message);
        let Some(asked) = asked else { panic!("`{path}` is not asked for: {found}") };
        // the example must be one
        let help = asked.help.first().unwrap_or_else(|| panic!("{asked}"));
        let example = help.strip_prefix("write `").and_then(|h| h.split_once(" = ")).map(|(_, e)| e);
        let example = example.and_then(|e| e.rsplit_once("`: ")).map(|(e, _)| e);
        let Some(example) = example else { panic!("{asked}") };
        set.push((format!("{table}.{name}"), example.to_owned()));
        let document = Document::parse("in.toml", text, &set).unwrap();
        if let Err(found) = Plan::of(&document, &catalog) {
            let about = format!("`{table}.{name}");
            let refused = found.iter().find(|d| d.message.starts_with(&about));
            assert!(refused.is_none(), "the example for {path} is refused: {}", refused.unwrap());
        }
    }
}

#[test]
fn what_is_no_text_or_not_there_is_refused() {
    let folder = std::env::temp_dir();
    let file = folder.join(format!("md-bad-input-{}.toml", std::process::id()));
    std::fs::write(&file, b"title = \"caf\xe9\"\n").unwrap();
    let read = |path: &Path| match Plan::read(path, &[], &md::catalog()) {
        Ok(_) => panic!("accepted"),
        Err(found) => found.render(false).replace(&format!("{}", path.display()), "in.toml"),
    };
    assert_eq!(
        read(&file),
        "error: the input is not UTF-8 text (byte 13 of line 1)\n--> in.toml\n = help: save it as UTF-8"
    );
    std::fs::remove_file(&file).unwrap();
    assert_eq!(read(&file), "error: the input cannot be read: there is no such file\n--> in.toml");
    assert_eq!(
        read(&folder),
        "error: the input cannot be read: it is a folder\n--> in.toml\n = help: name the file in it"
    );
}

/// The example inputs, as far as their structures are there.
fn examples() -> Vec<(PathBuf, String)> {
    let texts = toml_files(Path::new("inputs")).into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    });
    let all: Vec<_> = texts.collect();
    assert!(all.len() >= 6);
    all
}

/// Smaller systems of the same kinds, so that many can be built.
fn smaller(text: &str) -> String {
    text.replace("repeat = [6, 6, 6]", "repeat = [2, 2, 2]")
        .replace("repeat = [5, 5, 5]", "repeat = [1, 1, 1]")
}

#[test]
fn the_examples_are_accepted_without_warnings() {
    for (path, text) in examples() {
        let document = Document::parse(&path, &smaller(&text), &[]).unwrap();
        match Plan::of(&document, &md::catalog()) {
            Ok(plan) => assert!(plan.warnings.is_empty(), "{}", plan.warnings),
            // (a structure that is not there yet)
            Err(found) => assert!(found.iter().all(|d| d.message.starts_with("there is no file")), "{found}"),
        }
    }
}

/// One edit of a text: where, what, and with what.
#[derive(Clone, Debug)]
enum Edit {
    DeleteToken(usize),
    DuplicateToken(usize),
    SwapTokens(usize, usize),
    ReplaceToken(usize, usize),
    DeleteLine(usize),
    DuplicateLine(usize),
    SwapLines(usize, usize),
    DeleteCharacter(usize),
    InsertCharacter(usize, char),
    Cut(usize),
}

/// What a token may become: numbers at the edges, other kinds, other units, other punctuation.
const INSTEAD: [&str; 40] = [
    "0",
    "-1",
    "1",
    "2",
    "3",
    "1e400",
    "-0.0",
    "nan",
    "inf",
    "1e-300",
    "1e300",
    "99999999999999999999",
    "9223372036854775807",
    "1e15",
    "\"\"",
    "\"9 A\"",
    "\"300 K\"",
    "\"1 fs\"",
    "\"-5 kJ/mol\"",
    "\"1e30 nm\"",
    "\"*\"",
    "\"-\"",
    "\"A-A\"",
    "\"none\"",
    "true",
    "false",
    "[]",
    "{}",
    "[[]]",
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    "#",
    "'",
    "\"\"\"",
    "\u{3b5}",
    "none = true",
];

fn edit() -> impl Strategy<Value = Edit> {
    let n = any::<usize>;
    prop_oneof![
        n().prop_map(Edit::DeleteToken),
        n().prop_map(Edit::DuplicateToken),
        (n(), n()).prop_map(|(a, b)| Edit::SwapTokens(a, b)),
        (n(), n()).prop_map(|(a, b)| Edit::ReplaceToken(a, b)),
        (n(), n()).prop_map(|(a, b)| Edit::ReplaceToken(a, b)),
        n().prop_map(Edit::DeleteLine),
        n().prop_map(Edit::DuplicateLine),
        (n(), n()).prop_map(|(a, b)| Edit::SwapLines(a, b)),
        n().prop_map(Edit::DeleteCharacter),
        (n(), any::<char>()).prop_map(|(a, c)| Edit::InsertCharacter(a, c)),
        n().prop_map(Edit::Cut),
    ]
}

/// Words, numbers, quoted strings and single other characters, blanks included: joined they are the text.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut quoted = false;
    let class = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    for c in text.chars() {
        let joins = match tokens.last().and_then(|t| t.chars().last()) {
            Some(_) if quoted => true,
            Some(last) => class(last) && class(c),
            None => false,
        };
        match tokens.last_mut() {
            Some(token) if joins => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        if c == '"' {
            quoted = !quoted;
        }
    }
    tokens
}

fn apply(text: &str, edit: &Edit) -> String {
    let mut words = tokens(text);
    let solid: Vec<usize> = (0..words.len()).filter(|&k| !words[k].trim().is_empty()).collect();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    if solid.is_empty() {
        return text.to_owned();
    }
    let word = |k: usize| solid[k % solid.len()];
    let (line_count, char_count) = (lines.len(), starts.len());
    match *edit {
        Edit::DeleteToken(a) => words[word(a)].clear(),
        Edit::DuplicateToken(a) => words[word(a)] = words[word(a)].repeat(2),
        Edit::SwapTokens(a, b) => words.swap(word(a), word(b)),
        Edit::ReplaceToken(a, b) => words[word(a)] = INSTEAD[b % INSTEAD.len()].to_owned(),
        Edit::DeleteLine(a) => {
            lines.remove(a % line_count);
            return lines.concat();
        }
        Edit::DuplicateLine(a) => {
            lines.insert(a % line_count, lines[a % line_count]);
            return lines.concat();
        }
        Edit::SwapLines(a, b) => {
            lines.swap(a % line_count, b % line_count);
            return lines.concat();
        }
        Edit::DeleteCharacter(a) => {
            let mut text = text.to_owned();
            text.remove(starts[a % char_count]);
            return text;
        }
        Edit::InsertCharacter(a, c) => {
            let mut text = text.to_owned();
            text.insert(starts[a % char_count], c);
            return text;
        }
        Edit::Cut(a) => return text[..starts[a % char_count]].to_owned(),
    }
    words.concat()
}

/// As many as `PROPTEST_CASES` says.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// Whether it is small enough to be built many times: an edit may well make a million atoms.
fn is_small(text: &str) -> bool {
    let list = text.split("repeat").skip(1).filter_map(|rest| rest.split(']').next());
    list.flat_map(|l| l.split(|c: char| !c.is_ascii_digit()))
        .filter_map(|digits| digits.parse::<f64>().ok())
        .all(|x| !(30.0..1e9).contains(&x))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Whatever is done to an input, the program answers; and every answer can be shown.
    #[test]
    fn edited_inputs_never_panic(which in 0usize..6, edits in proptest::collection::vec(edit(), 1..4)) {
        let (path, text) = &examples()[which];
        let mut text = smaller(text);
        for edit in &edits {
            text = apply(&text, edit);
        }
        prop_assume!(is_small(&text));
        let said = match Document::parse(path, &text, &[]) {
            Ok(document) => match Plan::of(&document, &md::catalog()) {
                Ok(plan) => plan.warnings,
                Err(found) => {
                    prop_assert!(found.has_errors());
                    found
                }
            },
            Err(found) => found,
        };
        let _ = (said.render(false), said.render(true));
    }

    /// Nor do overrides.
    #[test]
    fn overrides_never_panic(
        which in 0usize..6,
        path in "(system|stage|output|atoms|pair|units|[a-z*]{0,4})([.\\[\\]0-9a-z\"*-]{0,12})",
        value in "[\\[\\]{}=0-9a-zA-Z\" .,-]{0,10}",
    ) {
        let (file, text) = &examples()[which];
        let text = smaller(text);
        prop_assume!(is_small(&format!("{path}={value}]")));
        let said = match Document::parse(file, &text, &[(path, value)]) {
            Ok(document) => Plan::of(&document, &md::catalog()).map_or_else(|e| e, |plan| plan.warnings),
            Err(found) => found,
        };
        let _ = (said.render(false), said.render(true));
    }
}
