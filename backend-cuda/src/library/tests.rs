//! Names per system, and what is said about libraries that are not there.

use super::*;

#[test]
fn a_toolkit_elsewhere_is_tried_too() {
    let tried = Libraries::unix(Some("/opt/cuda-13"));
    assert_eq!(tried.nvrtc.last().map(String::as_str), Some("/opt/cuda-13/lib64/libnvrtc.so"));
    assert_eq!(tried.driver[0], "libcuda.so.1");

    let tried = Libraries::windows(Some("C:/CUDA"));
    assert!(
        tried
            .nvrtc
            .iter()
            .any(|name| name.ends_with("nvrtc64_130_0.dll") && name.starts_with("C:/CUDA"))
    );
    assert_eq!(tried.nvml, ["nvml.dll"]);
}

#[test]
fn every_name_that_was_tried_is_reported_with_its_error() {
    let names = ["no-such-library-1", "no-such-library-2"].map(String::from);
    let outcome = LibraryOutcome::from(open(&names, &[]));
    let LibraryOutcome::Missing { attempts } = &outcome else { panic!("opened {outcome}") };
    assert_eq!(
        attempts.iter().map(|attempt| &attempt.name).collect::<Vec<_>>(),
        [&names[0], &names[1]]
    );
    assert!(attempts.iter().all(|attempt| !attempt.error.is_empty()));
    let [first, second] = &attempts[..] else { panic!("two names were tried, not {outcome}") };
    assert!(outcome.to_string().contains("tried no-such-library-1"), "{outcome}");
    assert!(first.to_string().starts_with("no-such-library-1: "), "{first}");
    assert!(!second.error.starts_with("no-such-library-2"), "the name is said twice: {second}");
}

#[test]
fn names_that_failed_alike_share_a_line() {
    let attempt = |name: &str, error: &str| Attempt { name: name.into(), error: error.into() };
    let attempts = vec![attempt("a", "gone"), attempt("b", "gone"), attempt("c", "broken")];
    let text = LibraryOutcome::Missing { attempts }.to_string();
    assert_eq!(text, "missing\n  tried a, b: gone\n  tried c: broken");
}

#[test]
fn a_name_with_a_zero_byte_is_an_error() {
    assert!(open(&[String::from("a\0b")], &[]).is_err());
}

#[test]
fn without_names_a_library_is_missing() {
    assert!(LibraryOutcome::from(open(&[], &[])).is_missing());
}
