//! Names in code are offences, words are not.

use super::super::found;
use super::check;

#[test]
fn a_driver_in_code_is_found() {
    let source = "//! About wgpu and CUDA.\n\
                  use petgraph::Graph;\n\
                  fn f(buffer: &wgpu::Buffer) { cuda_sys::init() }\n";
    let files = [("core/src/a.rs", source), ("backend-wgpu/src/a.rs", source)];
    assert_eq!(
        found(check, &files),
        [
            "core/src/a.rs:2: the core must not name petgraph",
            "core/src/a.rs:3: the core must not name wgpu",
            "core/src/a.rs:3: the core must not name cuda_sys",
        ]
    );
}

#[test]
fn words_and_data_are_free() {
    let source = "/// Runs through wgpu.\n\
                  enum BackendKind { Wgpu, Cuda }\n\
                  fn name() -> &'static str { \"wgpu\" }\n\
                  struct Program { cuda_c: String, wgsl: String }\n";
    assert!(found(check, &[("core/src/a.rs", source)]).is_empty());
}
