//! Commands as they are printed, and their results.

use super::*;

#[test]
fn a_command_is_printed_for_a_shell() {
    let command = Command::cargo(&["doc", "it's", "--a=b"], Path::new("."))
        .with("RUSTDOCFLAGS", "-D warnings");
    assert_eq!(command.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc 'it'\\''s' --a=b");
}

#[test]
fn a_program_that_is_not_there_is_an_error_that_names_it() {
    let command = Command::new("no-such-program", &["x"], Path::new("."));
    assert!(!command.succeeds());
    let (_, result) = command.run_and_read();
    for message in [command.run().unwrap_err(), command.output().unwrap_err(), result.unwrap_err()]
    {
        assert!(message.starts_with("cannot start `no-such-program x`: "), "{message}");
    }
}

#[test]
fn what_a_program_prints_is_returned_with_its_failure() {
    let cargo = Command::cargo(&["no-such-command"], Path::new("."));
    let (text, result) = cargo.run_and_read();
    assert!(text.contains("no-such-command"), "{text}");
    assert!(result.unwrap_err().starts_with("`cargo no-such-command` failed: "));
    let cargo = Command::cargo(&["--version"], Path::new("."));
    assert!(cargo.succeeds());
    assert!(cargo.output().unwrap().starts_with("cargo 1."));
}
