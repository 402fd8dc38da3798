//! `md new`

use super::{Failure, Outcome, say, table};
use crate::input::report::did_you_mean;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

#[derive(Args)]
pub(super) struct New {
    /// Which template; none lists them
    template: Option<String>,
}

/// An input to start from, with the files it needs.
struct Template {
    name: &'static str,
    about: &'static str,
    files: &'static [(&'static str, &'static str)],
}

const TEMPLATES: &[Template] = &[
    Template {
        name: "argon",
        about: "liquid argon: Lennard-Jones atoms, melted, thermostatted, then at constant energy",
        files: &[("argon.toml", include_str!("templates/argon.toml"))],
    },
    Template {
        name: "crystal",
        about: "a crystal of copper with a many-body energy; input in eV and Å (output never is)",
        files: &[("crystal.toml", include_str!("templates/crystal.toml"))],
    },
    Template {
        name: "spring",
        about: "two atoms on a spring in reduced units, the smallest system there is",
        files: &[
            ("spring.toml", include_str!("templates/spring.toml")),
            ("spring.xyz", include_str!("templates/spring.xyz")),
        ],
    },
    Template {
        name: "water",
        about: "flexible SPC/Fw water: molecules, charges, minimised before it moves",
        files: &[
            ("water.toml", include_str!("templates/water.toml")),
            ("water.xyz", include_str!("templates/water.xyz")),
        ],
    },
];

impl New {
    pub(super) fn run(self) -> Outcome {
        let Some(name) = self.template else {
            let rows: Vec<_> = TEMPLATES.iter().map(|t| vec![t.name.into(), t.about.into()]).collect();
            say(&format!("md new TEMPLATE, one of\n{}", table(&rows, &[])))?;
            return Ok(ExitCode::SUCCESS);
        };
        let Some(template) = TEMPLATES.iter().find(|t| t.name == name) else {
            let names = TEMPLATES.iter().map(|t| t.name);
            let help = match did_you_mean(&name, names.clone()) {
                Some(guess) => format!("did you mean `{guess}`?"),
                None => format!("the templates are {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(Failure::wrong(format!("there is no template `{name}`\nhelp: {help}")));
        };
        // all or nothing
        for (file, _) in template.files {
            if std::path::Path::new(file).symlink_metadata().is_ok() {
                return Err(Failure::wrong(format!("{file} is there already and is not overwritten")));
            }
        }
        for (file, text) in template.files {
            let written = std::fs::OpenOptions::new().write(true).create_new(true).open(file);
            match written.and_then(|mut f| f.write_all(text.as_bytes())) {
                Ok(()) => say(&format!("{file}\n"))?,
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                    return Err(Failure::wrong(format!("{file} is there already and is not overwritten")));
                }
                Err(e) => return Err(Failure::failed(format!("cannot write {file}: {e}"))),
            }
        }
        say(&format!("now: md run {}\n", template.files[0].0))?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::plan::Plan;
    use std::path::Path;

    #[test]
    fn every_template_is_an_input() {
        for template in TEMPLATES {
            let dir = tempfile::tempdir().unwrap();
            for (file, text) in template.files {
                std::fs::write(dir.path().join(file), text).unwrap();
            }
            let input = dir.path().join(template.files[0].0);
            let plan = Plan::read(Path::new(&input), &[], &crate::catalog());
            let plan = plan.unwrap_or_else(|found| panic!("{}", found.render(false)));
            assert!(plan.warnings.is_empty(), "{}", plan.warnings.render(false));
            assert!(!plan.stages.is_empty());
        }
    }
}
