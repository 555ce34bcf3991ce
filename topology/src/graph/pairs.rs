//! What joins two devices: a link of theirs, or a switch that both hang on.

use std::collections::BTreeMap;

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use super::{Edge, GpuTopology};
use crate::{End, GpuConnection, SwitchLink};

impl GpuTopology {
    /// What joins one device to another: the link that was set, or else the way through one switch
    /// that both hang on.
    ///
    /// Of a way through a switch the narrower link gives the kind and the bandwidth, the latencies
    /// add, the worse origin stands for both, and there is peer access. Through NVLinks the kind is
    /// `NvSwitch`. Of several switches the widest way is taken: one switch, not their sum. A pair
    /// that is joined only through switches in a row has routes, but no connection.
    ///
    /// Costs O(log devices) and copies the link; O(links of `from`) through a switch.
    pub fn connection(&self, from: usize, to: usize) -> Option<GpuConnection> {
        self.direct_connection(from, to).cloned().or_else(|| {
            self.ways_through_switch(from, to)
                .map(|(up, down)| {
                    GpuConnection::new(from, to, up.kind.across_switch(down.kind))
                        .with_bandwidth(up.bandwidth.narrower(&down.bandwidth))
                        .with_latency(up.latency.plus(&down.latency))
                        .with_peer_access(true)
                })
                .min_by(|a, b| {
                    let width = |link: &GpuConnection| link.bandwidth.value().unwrap_or(0.0);
                    let wait = |link: &GpuConnection| link.latency.value().unwrap_or(f64::INFINITY);
                    width(b).total_cmp(&width(a)).then(wait(a).total_cmp(&wait(b)))
                })
        })
    }

    /// Whether one device can reach the other's memory over what joins the two: the peer access of
    /// their [`connection`](Self::connection). Costs what that costs, but copies nothing.
    pub fn has_peer_access(&self, from: usize, to: usize) -> bool {
        match self.direct_connection(from, to) {
            Some(link) => link.peer_access,
            None => self.ways_through_switch(from, to).next().is_some(),
        }
    }

    /// The links of `from` to a switch that has a link to `to`, with those, by rising number of the
    /// switch.
    fn ways_through_switch(
        &self,
        from: usize,
        to: usize,
    ) -> impl Iterator<Item = (&SwitchLink, &SwitchLink)> {
        let ends = self.node(from).ok().zip(self.node(to).ok()).filter(|_| from != to);
        let mut ups: Vec<_> = ends.map_or_else(Vec::new, |(from, _)| self.ups(from).collect());
        ups.sort_unstable_by_key(|link| link.to);
        ups.into_iter().filter_map(move |up| Some((up, self.switch_link(up.to, to)?)))
    }

    /// The links of a device to switches.
    fn ups(&self, device: NodeIndex) -> impl Iterator<Item = &SwitchLink> {
        let outgoing = self.graph.edges_directed(device, Direction::Outgoing);
        outgoing.filter_map(|edge| match edge.weight() {
            Edge::SwitchLink(link) => Some(link),
            Edge::Connection(_) | Edge::HostLeg { .. } => None,
        })
    }

    /// The devices to which `index` has a [connection](Self::connection) of any kind, in ascending
    /// order.
    ///
    /// This follows the links in their direction, and asks neither for peer access nor for known
    /// figures. See [`peer_neighbors`](Self::peer_neighbors). Empty for an unknown device. Costs
    /// O(n log n) in the number of links that the device and its switches have.
    pub fn neighbors(&self, index: usize) -> Vec<usize> {
        self.neighbors_where(index, |_| true)
    }

    /// The devices whose memory `index` can reach over a [connection](Self::connection) with peer
    /// access, in ascending order. Costs what [`neighbors`](Self::neighbors) costs.
    pub fn peer_neighbors(&self, index: usize) -> Vec<usize> {
        self.neighbors_where(index, |link| link.peer_access)
    }

    fn neighbors_where(&self, index: usize, wanted: impl Fn(&GpuConnection) -> bool) -> Vec<usize> {
        let Ok(node) = self.node(index) else { return Vec::new() };
        let mut found = BTreeMap::new();
        for up in self.ups(node) {
            let End::Switch(switch) = up.to else { continue };
            let switch = self.switches[switch.number()];
            for down in self.graph.edges_directed(switch, Direction::Outgoing) {
                if let Edge::SwitchLink(SwitchLink { to: End::Device(device), .. }) = down.weight()
                    && *device != index
                {
                    found.insert(*device, true);
                }
            }
        }
        // The link of a pair stands before its switch.
        for edge in self.graph.edges_directed(node, Direction::Outgoing) {
            if let Edge::Connection(link) = edge.weight() {
                found.insert(link.to, wanted(link));
            }
        }
        found.into_iter().filter_map(|(device, wanted)| wanted.then_some(device)).collect()
    }

    /// Whether each device has a [connection](Self::connection) of some kind to each other one, in
    /// both directions.
    ///
    /// True of fewer than two devices. Costs O(links) without switches; with them, what
    /// [`neighbors`](Self::neighbors) of every device cost.
    pub fn is_fully_connected(&self) -> bool {
        let others = self.device_count().saturating_sub(1);
        let links_alone = self.unsorted_connections().count() == self.device_count() * others;
        links_alone
            || (self.switch_count() > 0
                && self.devices().all(|device| self.neighbors(device).len() == others))
    }
}
