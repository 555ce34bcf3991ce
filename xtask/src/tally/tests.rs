//! The closing lines of the runners.

use super::*;

#[test]
fn nextest_counts_once() {
    let text = "     Summary [   0.078s] 14 tests run: 13 passed (1 slow), 1 failed, 2 skipped\n";
    assert_eq!(Tally::read(text), Tally { passed: 13, failed: 1 });
    let text = "Summary [1.0s] 3 tests run: 1 passed, 1 failed, 1 timed out, 0 skipped";
    assert_eq!(Tally::read(text), Tally { passed: 1, failed: 2 });
}

#[test]
fn libtest_binaries_are_added_up() {
    let text = "test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                test passed ... ok\n\
                test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured\n";
    assert_eq!(Tally::read(text), Tally { passed: 7, failed: 1 });
}

#[test]
fn colours_do_not_matter() {
    let text = "\u{1b}[32;1m     Summary\u{1b}[0m [ 0.1s] \u{1b}[1m2\u{1b}[0m tests run: \
                \u{1b}[1m2\u{1b}[0m \u{1b}[32;1mpassed\u{1b}[0m, \u{1b}[1m0\u{1b}[0m skipped";
    assert_eq!(Tally::read(text).to_string(), "2 passed, 0 failed");
}
