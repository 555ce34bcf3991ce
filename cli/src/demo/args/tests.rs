//! Tests of reading `--drain` and `--inject`.

use super::*;

#[test]
fn drains_are_device_and_iteration() {
    assert_eq!("0@40".parse(), Ok(Drain { device: 0, iteration: 40 }));
    for text in ["", "0", "@", "0@", "@4", "a@4", "0@-1", "0@4@4", "0@99999999999"] {
        assert!(text.parse::<Drain>().unwrap_err().contains("as in 0@40"), "{text}");
    }
}

#[test]
fn injections_are_fault_and_number() {
    let fault = |kind, nth| Ok(Injection { fault: MessageFault { kind, nth } });
    assert_eq!("lose@1".parse(), fault(MessageFaultKind::Lose, 1));
    assert_eq!("duplicate@20".parse(), fault(MessageFaultKind::Duplicate, 20));
    assert_eq!("reorder@300".parse(), fault(MessageFaultKind::Reorder, 300));
    for text in ["", "lose", "lose@0", "lose@x", "swap@3", "Lose@1"] {
        assert!(text.parse::<Injection>().unwrap_err().contains("lose@N"), "{text}");
    }
}
