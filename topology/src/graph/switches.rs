//! Switches and their links in the graph.

use petgraph::graph::NodeIndex;

use super::{Edge, GpuTopology, Node, next_epoch};
use crate::{End, SwitchId, SwitchLink, TopologyError};

impl GpuTopology {
    /// Adds a switch without links.
    pub fn add_switch(&mut self) -> SwitchId {
        self.switches.push(self.graph.add_node(Node::Switch));
        self.epoch = next_epoch();
        SwitchId::new(self.switches.len() - 1)
    }

    /// All switches, by rising number.
    pub fn switches(&self) -> impl ExactSizeIterator<Item = SwitchId> + use<> {
        (0..self.switches.len()).map(SwitchId::new)
    }

    /// How many switches there are.
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Sets the link from `link.from` to `link.to`, in exactly this direction.
    ///
    /// # Errors
    /// [`TopologyError::UnknownDevice`] or [`TopologyError::UnknownSwitch`] for an end that is not
    /// there, [`TopologyError::NoSwitch`] if both ends are devices, [`TopologyError::SwitchLoop`]
    /// if both are one switch, [`TopologyError::EmptyLink`] if the kind states zero links or lanes.
    pub fn set_switch_link(&mut self, link: SwitchLink) -> Result<(), TopologyError> {
        let ends = (self.node_at(link.from)?, self.node_at(link.to)?);
        match (link.from, link.to) {
            (End::Device(from), End::Device(to)) => {
                return Err(TopologyError::NoSwitch { from, to });
            }
            (End::Switch(switch), End::Switch(to)) if switch == to => {
                return Err(TopologyError::SwitchLoop { switch });
            }
            _ if link.kind.is_empty() => return Err(TopologyError::EmptyLink { kind: link.kind }),
            _ => self.set_edge(ends, Edge::SwitchLink(link)),
        }
        Ok(())
    }

    /// Sets the link in both directions, with the same figures.
    ///
    /// # Errors
    /// Those of [`set_switch_link`](Self::set_switch_link).
    pub fn set_switch_link_both(&mut self, link: SwitchLink) -> Result<(), TopologyError> {
        let back = link.reversed();
        self.set_switch_link(link)?;
        self.set_switch_link(back)
    }

    /// Removes the link from one end to another, in exactly this direction, and returns it.
    pub fn remove_switch_link(
        &mut self,
        from: impl Into<End>,
        to: impl Into<End>,
    ) -> Option<SwitchLink> {
        let (from, to) = (from.into(), to.into());
        self.switch_link(from, to)?;
        match self.remove_edge((self.node_at(from).ok()?, self.node_at(to).ok()?))? {
            Edge::SwitchLink(link) => Some(link),
            Edge::Connection(_) | Edge::HostLeg { .. } => None,
        }
    }

    /// The link from one end to another, one of which is a switch. Costs O(log devices).
    pub fn switch_link(&self, from: impl Into<End>, to: impl Into<End>) -> Option<&SwitchLink> {
        let ends = (self.node_at(from.into()).ok()?, self.node_at(to.into()).ok()?);
        match &self.graph[*self.edges.get(&ends)?] {
            Edge::SwitchLink(link) => Some(link),
            Edge::Connection(_) | Edge::HostLeg { .. } => None,
        }
    }

    /// All links that have a switch at an end, sorted by `(from, to)`, devices before switches.
    pub fn switch_links(&self) -> Vec<&SwitchLink> {
        let mut links: Vec<_> = self.unsorted_switch_links().collect();
        links.sort_unstable_by_key(|link| (link.from, link.to));
        links
    }

    pub(crate) fn unsorted_switch_links(&self) -> impl Iterator<Item = &SwitchLink> {
        self.graph.edge_weights().filter_map(|edge| match edge {
            Edge::SwitchLink(link) => Some(link),
            Edge::Connection(_) | Edge::HostLeg { .. } => None,
        })
    }

    fn node_at(&self, end: End) -> Result<NodeIndex, TopologyError> {
        match end {
            End::Device(index) => self.node(index),
            End::Switch(switch) => {
                let node = self.switches.get(switch.number()).copied();
                node.ok_or(TopologyError::UnknownSwitch { switch })
            }
        }
    }
}
