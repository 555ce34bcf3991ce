//! Tests of reading what the system says about its memory.

use super::*;

#[test]
fn memory_is_read_in_bytes() {
    let text = "MemTotal:       16384 kB\nMemFree:  1 kB\nMemAvailable:      2048 kB\n";
    assert_eq!(meminfo_bytes(text, "MemTotal:"), Some(16 << 20));
    assert_eq!(meminfo_bytes(text, "MemAvailable:"), Some(2 << 20));
    assert_eq!(meminfo_bytes(text, "Swap:"), None);
    assert_eq!(meminfo_bytes("MemTotal: many kB", "MemTotal:"), None);
}

#[test]
fn a_machine_is_described_in_a_line() {
    let host = Host {
        threads: Some(8),
        available_memory_bytes: Some(3 << 29),
        total_memory_bytes: Some(4 << 30),
    };
    assert_eq!(
        host.describe(),
        "8 threads, 4.0 GiB memory, 1.5 GiB available; --devices host:N makes N devices of them"
    );
}
