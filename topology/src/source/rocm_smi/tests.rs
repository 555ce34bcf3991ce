//! Our own tables of rocm-smi.

use super::{read, recognizes};
use crate::{InterconnectType, Statement};

const TYPES: &str = "==== Link Type between two GPUs ====\n GPU0 GPU1 GPU2\nGPU0 0 XGMI PCIE\nGPU1 XGMI 0 PCIE\nGPU2 PCIE PCIE 0\n";

#[test]
fn words_tell_what_a_table_is_about_whatever_stands_over_it() {
    let all = read(&format!(
        "==== Hops between two GPUs ====\n GPU0 GPU1 GPU2\nGPU0 0 15 72\nGPU1 15 0 72\nGPU2 72 72 0\n\
         WARNING: something\n GPU0 GPU1 GPU2\nGPU0 0 1 3\nGPU1 1 0 3\nGPU2 3 3 0\n{TYPES}"
    ))
    .unwrap();
    let said: Vec<_> = all
        .pairs
        .iter()
        .filter(|pair| (pair.from, pair.to) == (0, 1))
        .map(|pair| &pair.statement)
        .collect();
    let xgmi = InterconnectType::InfinityFabric { links: 1 };
    assert_eq!(said, [&Statement::Weight(15), &Statement::Hops(1), &Statement::Class(xgmi)]);
}

#[test]
fn a_row_that_does_not_fit_is_left_out() {
    let all = read(&TYPES.replace("GPU1 XGMI 0 PCIE", "GPU1 XGMI0 PCIE")).unwrap();
    assert_eq!(all.pairs.len(), 4);
    assert_eq!(all.warnings[0].line, Some(4));
}

#[test]
fn affinity_is_what_a_gpu_is_near_to() {
    let all = read(
        "GPU[0]\t\t: (Topology) Numa Node: 1\nGPU[0]\t\t: (Topology) Numa Affinity: 2\n\
         GPU[1]\t\t: (Topology) Numa Node: 3\n\
         GPU[2]\t\t: (Topology) Numa Node: 0\nGPU[2]\t\t: (Topology) Numa Affinity: -1\n",
    )
    .unwrap();
    let nodes: Vec<_> = all.nodes.iter().map(crate::Node::numa_node).collect();
    assert_eq!(nodes, [Some(2), Some(3), None]);
}

#[test]
fn json_is_read_and_refused_with_its_line() {
    let text = r#"{"system": {
        "(Topology) Weight between DRM devices 0 and 1": "15",
        "(Topology) Hops between DRM devices 0 and 1": 1,
        "(Topology) Link type between DRM devices 0 and 1": "XGMI"},
        "card0": {"(Topology) Numa Node": "0", "(Topology) Numa Affinity": "0"},
        "card1": {"(Topology) Numa Node": "1"}}"#;
    assert!(recognizes(text));
    let all = read(text).unwrap();
    assert_eq!((all.nodes.len(), all.pairs.len()), (2, 6));
    assert_eq!(all.nodes[1].numa_node(), Some(1));
    assert_eq!(read(&text.replace("\"15\"", "...")).unwrap_err().line(), Some(2));
}

#[test]
fn complaints_are_quoted_with_a_remedy() {
    let text = "ERROR:root:Driver not initialized (amdgpu not found in modules)";
    assert!(recognizes(text));
    assert!(read(text).unwrap_err().to_string().contains("load the amdgpu driver"));
    assert!(read("GPU99999 GPU1\n").is_err());
}
