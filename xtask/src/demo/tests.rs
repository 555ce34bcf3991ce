//! Reports that pass and reports that do not.

use super::*;

#[test]
fn a_verified_report_passes() {
    let report = r#"{"verified": true, "messages": {"delivered": 12}, "migrations": [{}, {}]}"#;
    assert_eq!(check(report).unwrap(), "verified; 12 messages delivered, 2 kernels moved");
}

#[test]
fn anything_else_fails() {
    for report in [r#"{"verified": false}"#, r#"{"verified": "true"}"#, "{}", "", "verified"] {
        let error = check(report).unwrap_err();
        assert!(error.starts_with("the demo "), "{error}");
    }
}
