//! From TOML to a validated plan of a run.
