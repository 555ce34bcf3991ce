//! The developer's tool: `cargo xtask test` runs every check, `cargo xtask tidy` the house rules.
//!
//! Reading order: [`test_command`] lists the steps of the test command, [`tidy`] the house rules;
//! [`command`] runs programs, [`tree`], [`metadata`] and [`source`] read what tidy looks at.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the tool talks to the person who runs it")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod test_command;

mod command;
mod demo;
mod gpu_check;
mod set_up;
mod tally;

mod tidy;

mod metadata;
mod source;
mod tree;

const HELP: &str = "\
The developer's tool of hopwise.

usage: cargo xtask COMMAND

  test    set-up, then format, clippy, tidy, documentation, tests, doctests and a verified demo;
          stops at the first step that fails and says how to repeat it
  tidy    the house rules: layers, file length, wording, dependencies
  gpu-check [OPTIONS] | --carry FILE.tar.gz
          builds the command with its check of GPUs and runs it here, with the options of
          `hopwise gpu-check`; or packs it for a machine that has a GPU and no Rust
  --help  this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test_command::run(&root()),
        ["tidy"] => tidy::run(&root()),
        ["gpu-check", ref arguments @ ..] => gpu_check::run(&root(), arguments),
        ["--help" | "-h" | "help"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The folder of the workspace: cargo names this package's folder when it runs the tool.
fn root() -> PathBuf {
    let package = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or_else(|| package.clone(), Path::to_path_buf)
}
