//! The `md` command.

fn main() -> std::process::ExitCode {
    md::cli::main(md::catalog())
}
