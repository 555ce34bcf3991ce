//! Our own matrices of peer access.

use super::{read, recognizes};
use crate::{PeerCapability, PeerStatus, Statement};

const MATRIX: &str =
    " \tGPU0\tGPU1\tGPU2\t\n GPU0\tX\tOK\tCNS\t\n GPU1\tOK\tX\tU\t\n GPU2\tDR\tTNS\tX\t\n";

#[test]
fn every_status_is_read_in_its_direction() {
    let all = read(&format!("$ nvidia-smi topo -p2p rw\n{MATRIX}")).unwrap();
    assert_eq!(all.warnings, []);
    let said = |from, to, capability| {
        let about = all.pairs.iter().filter(|pair| (pair.from, pair.to) == (from, to));
        about.clone().find_map(|pair| match pair.statement {
            Statement::Peer { capability: this, status } if this == capability => Some(status),
            _ => None,
        })
    };
    for capability in [PeerCapability::Read, PeerCapability::Write] {
        assert_eq!(said(0, 1, capability), Some(PeerStatus::Supported));
        assert_eq!(said(0, 2, capability), Some(PeerStatus::ChipsetNotSupported));
        assert_eq!(said(2, 0, capability), Some(PeerStatus::DisabledByRegistryKey));
        assert_eq!(said(2, 1, capability), Some(PeerStatus::TopologyNotSupported));
        assert_eq!(said(1, 2, capability), Some(PeerStatus::Unknown));
    }
}

#[test]
fn several_matrices_are_told_apart_by_their_commands() {
    let text = format!("# nvidia-smi topo -p2p r\n{MATRIX}\n# nvidia-smi topo -p2p n\n{MATRIX}");
    let all = read(&text).unwrap();
    assert_eq!((all.nodes.len(), all.pairs.len()), (3, 12));
    assert!(recognizes(&text));
}

#[test]
fn without_a_command_reading_is_meant_and_that_is_told() {
    let all = read(MATRIX).unwrap();
    assert!(all.warnings[0].text.contains("reading"));
    assert!(read("nothing").is_err());
    assert!(!recognizes("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n"));
}
