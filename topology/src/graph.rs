//! The link graph. No index or type of petgraph leaves this module.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use petgraph::graph::{DiGraph, EdgeIndex, NodeIndex};

use crate::connection::LinkFigures;
use crate::{End, GpuConnection, HostLink, InterconnectType, SwitchLink, TopologyError};

mod pairs;
mod switches;
#[cfg(test)]
mod tests;

/// What is connected to what in one machine.
///
/// Devices are known by the index under which the coordinator knows them; indices may have gaps.
/// Links are directed: setting one direction never touches the other. Every device reaches every
/// other through host memory, so a pair without a link is not disconnected. Beside devices and the
/// host there may be [switches](SwitchLink), which relay and do nothing else.
///
/// ```text
///   GPU 0 ==NV12== GPU 3 ==NV18== switch 0 ==NV18== GPU 4
///     \              |                               |
///      +---- host ---+-------------------------------+
/// ```
///
/// ```
/// use hopwise_topology::{Figure, GpuConnection, GpuTopology, InterconnectType};
///
/// let mut topology = GpuTopology::new([0, 3]);
/// let kind = InterconnectType::NvLink { generation: Some(3), links: 12 };
/// let link = GpuConnection::new(0, 3, kind).with_bandwidth(Figure::reported(300.0, "vendor")?);
/// topology.set_connection_both(link)?;
/// assert!(topology.is_fully_connected());
/// assert_eq!(topology.connection(3, 0).map(|link| link.kind.class_name()), Some("NV12".into()));
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GpuTopology {
    graph: DiGraph<Node, Edge>,
    /// Where the host is in `graph`.
    host: NodeIndex,
    /// Where each device is in `graph`.
    nodes: BTreeMap<usize, NodeIndex>,
    /// Where each switch is in `graph`, by its number.
    switches: Vec<NodeIndex>,
    /// Where each edge is in `graph`; petgraph alone would search all edges of a node.
    edges: HashMap<(NodeIndex, NodeIndex), EdgeIndex>,
    epoch: u64,
}

#[derive(Clone, Debug)]
enum Node {
    Host,
    Device { numa_node: Option<u32> },
    Switch,
}

#[derive(Clone, Debug)]
enum Edge {
    /// From device to device.
    Connection(GpuConnection),
    /// Between a device and the host.
    HostLeg { kind: InterconnectType, figures: LinkFigures },
    /// With a switch at one end or both.
    SwitchLink(SwitchLink),
}

impl GpuTopology {
    /// A topology of these devices, without links. A repeated index counts once.
    pub fn new(devices: impl IntoIterator<Item = usize>) -> Self {
        let mut graph = DiGraph::new();
        let host = graph.add_node(Node::Host);
        let mut topology = Self {
            graph,
            host,
            nodes: BTreeMap::new(),
            switches: Vec::new(),
            edges: HashMap::new(),
            epoch: next_epoch(),
        };
        for index in devices {
            topology.insert_device(index, None);
        }
        topology
    }

    /// Adds a device without links.
    ///
    /// # Errors
    /// [`TopologyError::DeviceExists`] if the index is in use.
    pub fn add_device(&mut self, index: usize) -> Result<(), TopologyError> {
        if self.contains(index) {
            return Err(TopologyError::DeviceExists { index });
        }
        self.insert_device(index, None);
        Ok(())
    }

    fn insert_device(&mut self, index: usize, numa_node: Option<u32>) {
        let graph = &mut self.graph;
        self.nodes.entry(index).or_insert_with(|| graph.add_node(Node::Device { numa_node }));
        self.epoch = next_epoch();
    }

    /// Removes a device and every link that it has; switches stay. Costs O(devices + links).
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`] if there is no such device.
    pub fn remove_device(&mut self, index: usize) -> Result<(), TopologyError> {
        self.node(index)?;
        // A removal in place would renumber nodes and edges of the graph, so build it anew.
        let mut kept = Self::new([]);
        for _ in self.switches() {
            kept.add_switch();
        }
        for device in self.devices().filter(|&device| device != index) {
            kept.insert_device(device, self.numa_node(device));
            if let Some(link) = self.host_link(device) {
                kept.set_host_link(link)?;
            }
        }
        let stays = |link: &&GpuConnection| link.from != index && link.to != index;
        for link in self.unsorted_connections().filter(stays) {
            kept.set_connection(link.clone())?;
        }
        let gone = End::Device(index);
        for link in self.unsorted_switch_links().filter(|link| link.from != gone && link.to != gone)
        {
            kept.set_switch_link(link.clone())?;
        }
        *self = kept;
        Ok(())
    }

    /// A number that no other state of a topology in this process has: every change gives a new
    /// one, and clones keep it until they change. What was computed from a topology is up to date
    /// while the epochs agree. It is no part of equality or of the JSON document.
    ///
    /// ```
    /// use hopwise_topology::{GpuTopology, RouteTable};
    ///
    /// let mut topology = GpuTopology::new(0..2);
    /// let routes = RouteTable::build(&topology, &|_| true);
    /// assert_eq!(routes.epoch(), topology.epoch());
    /// topology.add_device(2)?;
    /// assert_ne!(routes.epoch(), topology.epoch());
    /// # Ok::<(), hopwise_topology::TopologyError>(())
    /// ```
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many devices there are.
    pub fn device_count(&self) -> usize {
        self.nodes.len()
    }

    /// The indices of all devices, in ascending order.
    pub fn devices(&self) -> impl ExactSizeIterator<Item = usize> + '_ {
        self.nodes.keys().copied()
    }

    /// Whether there is a device of this index.
    pub fn contains(&self, index: usize) -> bool {
        self.nodes.contains_key(&index)
    }

    fn node(&self, index: usize) -> Result<NodeIndex, TopologyError> {
        self.nodes.get(&index).copied().ok_or(TopologyError::UnknownDevice { index })
    }

    /// Sets the link from `connection.from` to `connection.to`, in exactly this direction.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`], [`TopologyError::SelfLink`], or
    /// [`TopologyError::EmptyLink`] if the kind states zero links or lanes.
    pub fn set_connection(&mut self, connection: GpuConnection) -> Result<(), TopologyError> {
        let GpuConnection { from, to, kind, .. } = connection;
        let ends = (self.node(from)?, self.node(to)?);
        if from == to {
            return Err(TopologyError::SelfLink { index: from });
        }
        if kind.is_empty() {
            return Err(TopologyError::EmptyLink { kind });
        }
        self.set_edge(ends, Edge::Connection(connection));
        Ok(())
    }

    /// Sets the link in both directions, with the same figures.
    ///
    /// # Errors
    /// Those of [`set_connection`](Self::set_connection).
    pub fn set_connection_both(&mut self, connection: GpuConnection) -> Result<(), TopologyError> {
        let back = connection.reversed();
        self.set_connection(connection)?;
        self.set_connection(back)
    }

    fn set_edge(&mut self, ends: (NodeIndex, NodeIndex), edge: Edge) {
        if let Some(&at) = self.edges.get(&ends) {
            self.graph[at] = edge;
        } else {
            let at = self.graph.add_edge(ends.0, ends.1, edge);
            self.edges.insert(ends, at);
        }
        self.epoch = next_epoch();
    }

    fn remove_edge(&mut self, ends: (NodeIndex, NodeIndex)) -> Option<Edge> {
        let at = self.edges.remove(&ends)?;
        let removed = self.graph.remove_edge(at);
        // The graph filled the gap with its last edge.
        if let Some(moved) = self.graph.edge_endpoints(at) {
            self.edges.insert(moved, at);
        }
        self.epoch = next_epoch();
        removed
    }

    /// Removes the link from one device to another, in exactly this direction, and returns it.
    pub fn remove_connection(&mut self, from: usize, to: usize) -> Option<GpuConnection> {
        match self.remove_edge((self.node(from).ok()?, self.node(to).ok()?))? {
            Edge::Connection(connection) => Some(connection),
            Edge::HostLeg { .. } | Edge::SwitchLink(_) => None,
        }
    }

    /// The link that was set from one device to another. Costs O(log devices).
    pub fn direct_connection(&self, from: usize, to: usize) -> Option<&GpuConnection> {
        let ends = (self.node(from).ok()?, self.node(to).ok()?);
        match &self.graph[*self.edges.get(&ends)?] {
            Edge::Connection(connection) => Some(connection),
            Edge::HostLeg { .. } | Edge::SwitchLink(_) => None,
        }
    }

    /// All links that were set between devices, sorted by `(from, to)`.
    pub fn connections(&self) -> Vec<&GpuConnection> {
        let mut connections: Vec<_> = self.unsorted_connections().collect();
        connections.sort_unstable_by_key(|link| (link.from, link.to));
        connections
    }

    pub(crate) fn unsorted_connections(&self) -> impl Iterator<Item = &GpuConnection> {
        self.graph.edge_weights().filter_map(|edge| match edge {
            Edge::Connection(connection) => Some(connection),
            Edge::HostLeg { .. } | Edge::SwitchLink(_) => None,
        })
    }

    /// Sets the link between a device and host memory, in both directions.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`] if there is no such device, or
    /// [`TopologyError::EmptyLink`] if the kind states zero links or lanes.
    pub fn set_host_link(&mut self, link: HostLink) -> Result<(), TopologyError> {
        let HostLink { device, kind, to_host, from_host } = link;
        let node = self.node(device)?;
        if kind.is_empty() {
            return Err(TopologyError::EmptyLink { kind });
        }
        self.set_edge((node, self.host), Edge::HostLeg { kind, figures: to_host });
        self.set_edge((self.host, node), Edge::HostLeg { kind, figures: from_host });
        Ok(())
    }

    /// The link between a device and host memory, if anything is known of it.
    ///
    /// A device without one still reaches the host; at what speed is unknown.
    pub fn host_link(&self, device: usize) -> Option<HostLink> {
        let node = self.node(device).ok()?;
        let leg = |ends| match &self.graph[*self.edges.get(&ends)?] {
            Edge::HostLeg { kind, figures } => Some((*kind, figures.clone())),
            Edge::Connection(_) | Edge::SwitchLink(_) => None,
        };
        let (kind, to_host) = leg((node, self.host))?;
        let (_, from_host) = leg((self.host, node))?;
        Some(HostLink { device, kind, to_host, from_host })
    }

    /// Says which NUMA node a device is attached to; `None` if that is not known.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`] if there is no such device.
    pub fn set_numa_node(
        &mut self,
        index: usize,
        numa_node: Option<u32>,
    ) -> Result<(), TopologyError> {
        let node = self.node(index)?;
        self.graph[node] = Node::Device { numa_node };
        self.epoch = next_epoch();
        Ok(())
    }

    /// The NUMA node that a device is attached to, if it is known.
    pub fn numa_node(&self, index: usize) -> Option<u32> {
        match self.graph[self.node(index).ok()?] {
            Node::Device { numa_node } => numa_node,
            Node::Host | Node::Switch => None,
        }
    }

    /// The other devices that are known to be on the same NUMA node, in ascending order.
    ///
    /// Two devices whose nodes are unknown are not neighbours.
    pub fn numa_neighbors(&self, index: usize) -> Vec<usize> {
        let Some(numa_node) = self.numa_node(index) else { return Vec::new() };
        self.devices()
            .filter(|&other| other != index && self.numa_node(other) == Some(numa_node))
            .collect()
    }
}

/// Two topologies are equal if they have the same devices, switches, links, figures and NUMA nodes,
/// in whatever order they were set.
impl PartialEq for GpuTopology {
    fn eq(&self, other: &Self) -> bool {
        let same_device = |device| {
            self.numa_node(device) == other.numa_node(device)
                && self.host_link(device) == other.host_link(device)
        };
        self.devices().eq(other.devices())
            && self.devices().all(same_device)
            && self.connections() == other.connections()
            && self.switch_count() == other.switch_count()
            && self.switch_links() == other.switch_links()
    }
}

/// Of all topologies in this process.
fn next_epoch() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
