//! Tests of the flow in bare networks.

use super::*;

#[test]
fn a_later_way_may_undo_part_of_an_earlier_one() {
    // The shortest way 0-1-2-3 would block both long ones.
    let mut network = Network::new(4);
    for (from, to) in [(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)] {
        network.add_arc(from, to, 1.0);
    }
    assert_eq!(network.max_flow(0, 3), 2.0);
    assert_eq!(network.max_flow(0, 3), 0.0, "nothing is left");
}

#[test]
fn capacities_that_do_not_add_up_exactly_still_end() {
    let mut network = Network::new(12);
    for layer in 0..10 {
        for _ in 0..3 {
            network.add_arc(layer, layer + 1, 0.1);
            network.add_arc(layer, layer + 2, 1e-17);
        }
    }
    let flow = network.max_flow(0, 10);
    assert!((flow - 0.3).abs() < 1e-12, "{flow}");
}

#[test]
fn a_filled_network_can_be_emptied_and_tells_its_cut() {
    let mut network = Network::new(3);
    let wide = network.add_arc(0, 1, 5.0);
    let narrow = network.add_arc(1, 2, 2.0);
    assert_eq!(network.max_flow(0, 2), 2.0);
    assert!(network.is_on_source_side(1) && !network.is_on_source_side(2));
    network.set_capacity(wide, 1.0);
    network.set_capacity(narrow, 2.0);
    assert_eq!(network.max_flow(0, 2), 1.0);
    assert!(network.is_on_source_side(0) && !network.is_on_source_side(1));
}

#[test]
fn a_long_chain_needs_no_deep_stack() {
    const NODES: usize = 100_000;
    let mut network = Network::new(NODES);
    for node in 1..NODES {
        network.add_arc(node - 1, node, 3.0);
    }
    assert_eq!(network.max_flow(0, NODES - 1), 3.0);
}
