//! What is wrong is named where it stands in the program's own text.

use hopwise_core::program::Grid;

use super::*;

const LIMITS: WorkgroupLimits =
    WorkgroupLimits { max_invocations: 256, max_size_x: 256, max_memory_bytes: 1024 };

fn refusal(wgsl: &str) -> (u32, u32, String) {
    let program = Program::builder("bad").pass("main", Grid::Fixed(1)).wgsl(wgsl).build().unwrap();
    let source = Source::new(&program, wgsl);
    let shader = source.assemble(Segments { count: 1, shift: 20 });
    match source.check(&shader, LIMITS) {
        Err(CompileError::Source { program, file, line, column, message }) => {
            assert_eq!((program.as_str(), file.as_str()), ("bad", "bad.wgsl"));
            (line, column, message)
        }
        other => panic!("expected a refusal, found {other:?}"),
    }
}

#[track_caller]
fn assert_refused(wgsl: &str, line: u32, column: u32, part: &str) {
    let found = refusal(wgsl);
    assert_eq!((found.0, found.1), (line, column), "{}", found.2);
    assert!(found.2.contains(part), "{}", found.2);
}

#[test]
fn syntax_errors_have_their_place() {
    assert_refused("@compute @workgroup_size(1)\nfn main() {\n    let x = ;\n}", 3, 13, "expected");
    assert_refused("// \u{e4}\n/* \u{e4} */ fnord", 2, 9, "expected global item");
}

#[test]
fn unknown_names_have_their_place() {
    let wgsl = "@compute @workgroup_size(1)\nfn main() {\n    hw_sett_state(0u, 1u);\n}";
    assert_refused(wgsl, 3, 5, "hw_sett_state");
}

#[test]
fn type_errors_have_their_place() {
    let wgsl = "@compute @workgroup_size(1)\nfn main() {\n    hw_set_state(0u, 1.5f);\n}";
    assert_refused(wgsl, 3, 22, "");
    let wgsl = "@compute @workgroup_size(1)\nfn main() {\n    let x: u32 = hw_started();\n}";
    assert_refused(wgsl, 3, 9, "u32");
}

#[test]
fn a_text_that_ends_too_early_is_an_error_at_its_end() {
    let wgsl = "@compute @workgroup_size(1)\nfn main() {\n    hw_run_again();\n";
    assert_refused(wgsl, 3, 20, "bracket");
}

#[test]
fn names_of_the_prelude_cannot_be_taken() {
    let wgsl = "fn hw_state(i: u32) -> u32 { return i; }\n\
                @compute @workgroup_size(1) fn main() {}";
    assert_refused(wgsl, 1, 4, "hw_state");
}

#[test]
fn a_missing_entry_point_is_named_with_those_there_are() {
    assert_refused("@compute @workgroup_size(1) fn mian() {}", 1, 1, "there are: mian");
    assert_refused("fn main() {}", 1, 1, "there are: none");
}

#[test]
fn bindings_belong_to_the_prelude() {
    for binding in [0, 9] {
        let wgsl = format!(
            "// mine\n@group(0) @binding({binding}) var<storage> table: array<u32>;\n\
             @compute @workgroup_size(1) fn main() {{ hw_set_state(0u, table[0]); }}"
        );
        assert_refused(&wgsl, 2, 23, "`table` is a binding");
    }
}

#[test]
fn workgroups_are_checked() {
    let wgsl = "@compute @workgroup_size(512)\nfn  main ( ) {}";
    assert_refused(wgsl, 2, 1, "the device allows 256");
    assert_refused("@compute @workgroup_size(8, 8) fn main() {}", 1, 32, "@workgroup_size(64)");
    let wgsl = "override size = 64u;\n@compute @workgroup_size(size) fn main() {}";
    assert_refused(wgsl, 2, 32, "write a constant");
}

#[test]
fn an_entry_point_is_not_looked_for_in_comments() {
    let wgsl = "// fn main() is below\n/* fn main() {} /* */ fn main() */ fn remain() {}\n\
                @compute @workgroup_size(512) fn /* the */ main // one\n () {}";
    assert_refused(wgsl, 3, 31, "the device allows 256");
}

#[test]
fn memory_of_a_workgroup_is_checked_where_it_is_used() {
    let declared = "var<workgroup> a: array<u32, 200>; var<workgroup> b: array<u32, 200>;\n";
    let used = format!("{declared}@compute @workgroup_size(1) fn main() {{ a[0] = b[0]; }}");
    assert_refused(&used, 2, 29, "1600 bytes");
}
