//! Our own tables and JSON of amd-smi.

use super::{read, recognizes};
use crate::{InterconnectType, PeerCapability, PeerStatus, Statement};

#[test]
fn tables_are_read_by_address() {
    let text = "LINK TYPE TABLE:\n 0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF XGMI\n\
                0000:22:00.0 XGMI SELF\n\nACCESS TABLE:\n 0000:0c:00.0 0000:22:00.0\n\
                0000:0c:00.0 ENABLED DISABLED\n0000:22:00.0 ENABLED ENABLED\n\n\
                NUMA BW TABLE:\n 0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 N/A 0-64000\n\n\
                DMA TABLE:\n 0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF T\n";
    assert!(recognizes(text));
    let all = read(text).unwrap();
    assert_eq!(all.warnings, []);
    assert_eq!(all.nodes[1].pci, Some("22:00.0".parse().unwrap()));
    let said: Vec<_> =
        all.pairs.iter().filter(|pair| pair.from == 0).map(|pair| pair.statement.clone()).collect();
    assert_eq!(said[0], Statement::Class(InterconnectType::InfinityFabric { links: 1 }));
    let (capability, status) = (PeerCapability::Read, PeerStatus::NotSupported);
    assert_eq!(said[1], Statement::Peer { capability, status });
    assert!(matches!(&said[2], Statement::Bandwidth(figure) if figure.value() == Some(64.0)));
}

#[test]
fn json_is_read() {
    let text = r#"[
        {"gpu": 0, "bdf": "0000:0c:00.0", "links": [
            {"gpu": 0, "bdf": "0000:0c:00.0", "weight": 0, "link_type": "SELF", "num_hops": 0},
            {"gpu": 1, "bdf": "0000:22:00.0", "weight": 15, "link_status": "ENABLED",
             "link_type": "XGMI", "num_hops": "1", "bandwidth": "50000-100000"}]},
        {"gpu": 1, "bdf": "0000:22:00.0", "links": [{"gpu": 7, "bdf": "0000:77:00.0"}]}]"#;
    assert!(recognizes(text));
    let all = read(text).unwrap();
    assert_eq!((all.nodes.len(), all.pairs.len()), (2, 5));
    assert!(all.warnings[0].text.contains("leads to no GPU"));
    assert_eq!(read("[{\n").unwrap_err().line(), Some(2));
    assert!(read("[]").is_err());
}
