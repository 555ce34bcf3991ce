//! Tests of reading device lists.

use super::*;

fn refused(text: &str) -> String {
    text.parse::<DeviceList>().unwrap_err()
}

#[test]
fn counts_add_up() {
    assert_eq!("host:3".parse::<DeviceList>().unwrap().len(), 3);
    assert_eq!("host:1, host:2".parse::<DeviceList>().unwrap().len(), 3);
}

#[test]
fn what_is_wrong_and_what_is_allowed_is_said() {
    assert!(refused("wgpu:2").contains("allowed: host"));
    assert!(refused("host").contains("as in host:3"));
    assert!(refused("").contains("as in host:3"));
    for count in ["0", "-1", "x", "", "257", "99999999999999999999"] {
        assert!(refused(&format!("host:{count}")).contains("from 1 to 256"), "{count}");
    }
    assert!(refused("host:200,host:200").contains("400 devices"));
}
