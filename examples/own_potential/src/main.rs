//! `md` with one more potential. In this folder: `cargo run -- run own.toml`, `cargo run -- explain nine-six` …

use own_potential::NineSix;

fn main() -> std::process::ExitCode {
    md::cli::main(md::catalog().pair::<NineSix>())
}
