//! Graph dumps.

use hopwise_topology::{ChannelGraph, NodeKind, Observations, Tool};

use super::{Outcome, all, clean, count, numbers};

/// Numbers of the GPUs of a channel in order; networks are `-1 - number`.
fn stops(graph: &ChannelGraph, channel: usize) -> Vec<i64> {
    let stop = |label: &String| {
        label.strip_prefix("GPU").map_or_else(
            || -1 - label.strip_prefix("NET").unwrap().parse::<i64>().unwrap(),
            |number| number.parse().unwrap(),
        )
    };
    graph.channels[channel].iter().map(stop).collect()
}

fn ids(observed: &Observations) -> Vec<(u32, u32)> {
    observed.channel_graphs.iter().map(|graph| (graph.id, graph.pattern)).collect()
}

pub(super) fn azure_ncv4(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(ids(observed), [(0, 4), (1, 1), (2, 3)]);
    let ring = &observed.channel_graphs[0];
    assert_eq!(ring.channels.len(), 2);
    assert_eq!((stops(ring, 0), stops(ring, 1)), (vec![0, 1, 2, 3], vec![0, 3, 2, 1]));
    for graph in &observed.channel_graphs {
        assert_eq!((graph.intra_class.as_deref(), graph.intra_gb_per_s), (Some("SYS"), Some(12.0)));
    }
    assert_eq!(observed.channel_graphs[1].channels.len(), 4);
    assert_eq!(numbers(observed), ["GPU0", "GPU1", "GPU2", "GPU3"]);
    assert_eq!(observed.links, []);
}

pub(super) fn b200(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(ids(observed), [(0, 4), (1, 1)]);
    for graph in &observed.channel_graphs {
        assert_eq!(graph.channels.len(), 8);
        assert_eq!((graph.intra_class.as_deref(), graph.intra_gb_per_s), (Some("NVL"), Some(40.0)));
        assert_eq!((graph.inter_class.as_deref(), graph.inter_gb_per_s), (Some("PIX"), Some(20.0)));
        for channel in 0..8 {
            let stops = stops(graph, channel);
            assert!(stops[0] < 0 && stops.first() == stops.last() && stops.len() == 10);
        }
    }
    assert_eq!(stops(&observed.channel_graphs[0], 0), [-6, 0, 4, 5, 6, 7, 3, 2, 1, -6]);
    assert_eq!(stops(&observed.channel_graphs[0], 7), [-13, 7, 0, 1, 2, 3, 5, 4, 6, -13]);
    assert_eq!(count(observed, NodeKind::Gpu), 8);
    let nets = all(observed, NodeKind::Nic);
    let nets: Vec<_> = nets.iter().map(|net| net.label(Tool::Nccl).unwrap()).collect();
    assert_eq!(nets, ["NET5", "NET6", "NET7", "NET8", "NET9", "NET10", "NET11", "NET12"]);
}

pub(super) fn dell(outcome: &Outcome) {
    let observed = clean(outcome);
    assert_eq!(ids(observed), [(0, 4), (1, 1), (4, 6), (2, 3), (3, 5)]);
    let channels: Vec<_> =
        observed.channel_graphs.iter().map(|graph| graph.channels.len()).collect();
    assert_eq!(channels, [1, 1, 0, 0, 0]);
    assert_eq!(stops(&observed.channel_graphs[0], 0), [0, 1, 2, 3]);
    assert_eq!(stops(&observed.channel_graphs[1], 0), [0, 1, 2, 3]);
    assert_eq!(numbers(observed), ["GPU0", "GPU1", "GPU2", "GPU3"]);
}
