//! Tests of tables and failures.

use hopwise_core::fleet::Party;
use hopwise_core::id::ChannelId;

use super::*;

#[test]
fn a_table_has_its_header_and_aligns_numbers_to_the_right() {
    let text = table(&["name", "count"], 1, &[vec!["a".into(), "7".into()]]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("name") && lines[0].contains("count"), "{text}");
    assert!(lines[2].contains("a    ") && lines[2].contains("    7"), "{text}");
}

#[test]
fn microseconds_are_shown_as_milliseconds() {
    assert_eq!(milliseconds(0), "0.000");
    assert_eq!(milliseconds(12_034), "12.034");
}

#[test]
fn only_channels_with_something_wrong_are_named() {
    let ledger = |lost, duplicated| ChannelLedger {
        channel: ChannelId::from_raw(1),
        from: Party::Host { name: "me".into() },
        to: Party::Host { name: "you".into() },
        sent: 9,
        delivered: 9 - lost,
        waiting: 0,
        duplicated,
        out_of_order: 0,
        dead_lettered: 0,
        lost,
        same_device: 0,
        direct_p2p: 0,
        multi_hop: 0,
        host_mediated: 9,
        relays: Vec::new(),
    };
    let failures = message_failures(&[ledger(0, 0), ledger(1, 0), ledger(0, 2)]);
    assert_eq!(
        failures,
        [
            "messages lost: 1 of 9 from host:me to host:you",
            "messages duplicated: 2 of 9 from host:me to host:you"
        ]
    );
}
