//! Maximum flow: what goes from one device to another if all ways are used at once.

use std::collections::HashMap;

use crate::{End, Figure, GpuTopology, InterconnectType};
pub(crate) use network::Network;

mod network;
#[cfg(test)]
mod tests;

/// The greatest bandwidth from one device to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaxFlow {
    /// GB/s over all ways together. Links of unknown bandwidth count nothing.
    pub gb_per_s: f64,
    /// How many links that could carry something have an unknown bandwidth. If there are any, the
    /// true figure may be greater.
    pub unknown_links: usize,
}

impl GpuTopology {
    /// The greatest bandwidth from one device to another while nothing else is sent, over all links
    /// with peer access at once. Switches relay, and so do devices over links whose kind
    /// [carries relays](InterconnectType::carries_relays). Host memory does not.
    ///
    /// `None` if a device is unknown, or if both are the same. Costs at worst
    /// O((devices + switches)^2 x links) by Dinic's algorithm; on machines hardly more than O(links)
    /// for each length of way that is of use.
    ///
    /// ```
    /// use hopwise_topology::{Figure, GpuConnection, GpuTopology, InterconnectType};
    ///
    /// let mut topology = GpuTopology::new(0..3);
    /// let kind = InterconnectType::NvLink { generation: Some(2), links: 1 };
    /// for (from, to) in [(0, 1), (1, 2), (0, 2)] {
    ///     let link = GpuConnection::new(from, to, kind);
    ///     topology.set_connection(link.with_bandwidth(Figure::reported(25.0, "vendor")?))?;
    /// }
    /// let flow = topology.max_flow_gb_per_s(0, 2).expect("both devices are there");
    /// assert_eq!(flow.gb_per_s, 50.0);
    /// # Ok::<(), hopwise_topology::TopologyError>(())
    /// ```
    pub fn max_flow_gb_per_s(&self, from: usize, to: usize) -> Option<MaxFlow> {
        if from == to || !self.contains(from) || !self.contains(to) {
            return None;
        }
        let mut ways = Ways::new(from, to);
        for link in self.unsorted_connections().filter(|link| link.peer_access) {
            ways.add([link.from.into(), link.to.into()], link.kind, &link.bandwidth);
        }
        for link in self.unsorted_switch_links() {
            ways.add([link.from, link.to], link.kind, &link.bandwidth);
        }
        let Ways { places, mut network, unknown_links, .. } = ways;
        let [source, sink] = [from, to].map(|device| places[&End::Device(device)]);
        Some(MaxFlow { gb_per_s: network.max_flow(source, sink), unknown_links })
    }
}

/// The links that may carry something between two devices.
struct Ways {
    from: End,
    to: End,
    places: HashMap<End, usize>,
    network: Network,
    unknown_links: usize,
}

impl Ways {
    fn new(from: usize, to: usize) -> Self {
        let (from, to) = (End::Device(from), End::Device(to));
        Self {
            from,
            to,
            places: HashMap::from([(from, 0), (to, 1)]),
            network: Network::new(2),
            unknown_links: 0,
        }
    }

    fn add(&mut self, [from, to]: [End; 2], kind: InterconnectType, bandwidth: &Figure) {
        let relays = |end| matches!(end, End::Switch(_)) || kind.carries_relays();
        let leads_on = (from == self.from || relays(from)) && (to == self.to || relays(to));
        // What leads back to the start or away from the end only goes round.
        if !leads_on || to == self.from || from == self.to {
            return;
        }
        let Some(gb_per_s) = bandwidth.value() else {
            self.unknown_links += 1;
            return;
        };
        let [from, to] = [from, to]
            .map(|end| *self.places.entry(end).or_insert_with(|| self.network.add_node()));
        self.network.add_arc(from, to, gb_per_s);
    }
}
