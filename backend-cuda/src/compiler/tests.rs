//! Reading NVRTC's log. The texts are what NVRTC 12.9 wrote for wrong programs of ours.

use super::*;

const LOG: &str = "\
prelude.cuh(40): warning #1-D: last line of file ends without a newline
  }
  ^

program.cu(2): error: identifier \"foo\" is undefined
      x[0] = foo(1);
             ^

program.cu(3): error: a value of type \"const char *\" cannot be used to initialize an entity of type \"int\"
  \tint y = \"s\";
  \t        ^

At end of source: error: expected a \")\"

3 errors detected in the compilation of \"program.cu\".
";

fn parts(error: CompileError) -> (String, u32, u32, String) {
    match error {
        CompileError::Source { file, line, column, message, .. } => (file, line, column, message),
        other => panic!("{other}"),
    }
}

#[test]
fn the_first_error_is_told_with_line_and_column() {
    let (file, line, column, message) = parts(source_error("p", LOG));
    assert_eq!((file.as_str(), line, column), ("program.cu", 2, 12));
    assert!(message.starts_with("identifier \"foo\" is undefined (the first of 2 errors)"));
}

#[test]
fn tabs_are_columns_too() {
    let entries: Vec<_> = LogEntry::all(LOG).collect();
    assert_eq!(entries.len(), 3);
    assert_eq!((entries[2].line, entries[2].column), (3, 10));
    assert!(!entries[0].is_error);
}

#[test]
fn an_error_in_the_prelude_and_a_log_without_places_are_told() {
    let prelude = "prelude.cuh(7): error: expected a declaration\n";
    let (file, line, _, message) = parts(source_error("p", prelude));
    assert_eq!((file.as_str(), line), ("prelude.cuh", 7));
    assert!(message.contains("use no names that begin with hw_"), "{message}");
    let (file, line, _, message) = parts(source_error("p", "out of memory\n"));
    assert_eq!((file.as_str(), line, message.as_str()), ("program.cu", 1, "out of memory"));
}

#[test]
fn an_error_at_the_end_has_the_place_of_its_note() {
    let log = "\
At end of source: error: expected a \"}\"
program.cu(2): note #3196-D: to match this \"{\"
  HW_PASS(count) {
                 ^

1 error detected in the compilation of \"program.cu\".
";
    let (file, line, column, message) = parts(source_error("p", log));
    assert_eq!((file.as_str(), line, column), ("program.cu", 2, 16));
    assert!(message.starts_with("expected a \"}\" (to match this \"{\")"), "{message}");
}
