//! Our own topologies of AMD's kernel driver.

use super::{architecture, read_text, recognizes};
use crate::NodeKind;

const TEXT: &str = "nodes/0/properties:cpu_cores_count 8\nnodes/0/properties:simd_count 0\n\
    nodes/1/properties:cpu_cores_count 0\nnodes/1/properties:simd_count 64\n\
    nodes/1/properties:gfx_target_version 90402\nnodes/1/properties:location_id 1280\n\
    nodes/1/properties:unique_id 77\n\
    nodes/2/properties:cpu_cores_count 0\nnodes/2/properties:simd_count 64\n\
    nodes/2/properties:location_id 1281\nnodes/2/properties:unique_id 77\n\
    nodes/1/io_links/0/properties:type 2\nnodes/1/io_links/0/properties:node_from 1\n\
    nodes/1/io_links/0/properties:node_to 0\nnodes/1/io_links/0/properties:max_bandwidth 64000\n\
    nodes/1/io_links/1/properties:type 11\nnodes/1/io_links/1/properties:node_from 1\n\
    nodes/1/io_links/1/properties:node_to 2\nnodes/1/io_links/1/properties:weight 13\n";

#[test]
fn nodes_links_and_cards_are_read_at_any_depth() {
    for prefix in ["", "./", "/sys/class/kfd/kfd/topology/"] {
        let text: String = TEXT.lines().map(|line| format!("{prefix}{line}\n")).collect();
        assert!(recognizes(&text));
        let all = read_text(&text).unwrap();
        assert_eq!(all.warnings, []);
        let kinds: Vec<_> = all.nodes.iter().map(|node| node.kind).collect();
        use NodeKind::{Card, Gpu, NumaNode};
        assert_eq!(kinds, [NumaNode, Gpu, Gpu, Card]);
        assert_eq!((all.nodes[1].parent, all.nodes[1].numa_node()), (Some(0), Some(0)));
        assert_eq!((all.nodes[1].card, all.nodes[2].card), (Some(3), Some(3)));
        assert_eq!(all.nodes[1].architecture.as_deref(), Some("gfx942"));
        assert_eq!(all.nodes[1].uuid, None, "both state the card's");
        assert_eq!(all.links.len(), 2);
        assert_eq!(all.links[0].bandwidth.to_string(), "=64");
        assert!(all.links[1].bandwidth.is_unknown());
    }
}

#[test]
fn contradictions_and_links_to_nowhere_are_told() {
    let twice = format!("{TEXT}nodes/1/properties:location_id 1536\n");
    let all = read_text(&twice).unwrap();
    assert!(all.warnings[0].text.contains("location_id twice"));
    assert_eq!(all.nodes[1].pci, None);
    let nowhere = TEXT.replace("node_to 2", "node_to 9");
    assert!(read_text(&nowhere).unwrap().warnings[0].text.contains("not there"));
    assert!(read_text("nodes/0/properties:what 1\n").is_err());
    assert!(!recognizes("a:b\n"));
}

#[test]
fn versions_are_written_as_the_compiler_does() {
    assert_eq!(architecture(90010).as_deref(), Some("gfx90a"));
    assert_eq!(architecture(110_003).as_deref(), Some("gfx1103"));
    assert_eq!(architecture(0), None);
}
