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
fn adapters_are_named_in_brackets() {
    let kinds = |text: &str| -> Vec<String> {
        let list: DeviceList = text.parse().unwrap();
        list.0.iter().map(|wanted| wanted.kind.to_string()).collect()
    };
    assert_eq!(kinds("wgpu:2,host:1"), ["wgpu", "wgpu", "host"]);
    let name = "wgpu[llvmpipe (LLVM 15.0.6, 256 bits)]";
    assert_eq!(kinds(&format!("host:1,{name}:1")), ["host", name]);
    assert_eq!(kinds("wgpu[0000:01:00.0]:1, wgpu[3]:1"), ["wgpu[0000:01:00.0]", "wgpu[3]"]);
    let gpus = ["cuda[GPU-5a4f]", "cuda[0000:3b:00.0]", "cuda[1]", "cuda[H200]"];
    assert_eq!(kinds(&gpus.map(|gpu| format!("{gpu}:1")).join(",")), gpus);
    assert_eq!(kinds("cuda:2,wgpu:1,host:1"), ["cuda", "cuda", "wgpu", "host"]);
    assert!(refused("wgpu[3]").contains("as in host:3"));
    assert!(refused("wgpu[01:00.0]").contains("as in host:3"));
}

#[test]
fn what_is_wrong_and_what_is_allowed_is_said() {
    assert!(refused("cuda[]:2").contains("allowed: host, wgpu"));
    assert!(refused("host[1]:2").contains("allowed: host, wgpu"));
    assert!(refused("metal:2").contains("allowed: host, wgpu"));
    assert!(refused("wgpu[]:2").contains("allowed: host, wgpu"));
    assert!(refused("host").contains("as in host:3"));
    assert!(refused("").contains("as in host:3"));
    for count in ["0", "-1", "x", "", "257", "99999999999999999999"] {
        assert!(refused(&format!("host:{count}")).contains("from 1 to 256"), "{count}");
    }
    assert!(refused("host:200,host:200").contains("400 devices"));
}
