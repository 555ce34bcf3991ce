//! Links that several routes want at once.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::Route;
use crate::End;

/// A link that several routes use, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Where it starts.
    pub from: End,
    /// Where it ends.
    pub to: End,
    /// How many routes use it.
    pub routes: usize,
}

/// The links that more than one of these routes uses in the same direction, sorted by their ends:
/// transfers on those routes slow each other down.
///
/// Links to host memory are not listed: a route through the host uses those of its two devices.
/// Costs O(n log n) in the number of links on the routes.
///
/// ```
/// use hopwise_topology::{GpuTopology, InterconnectType, RouteTable, SwitchLink, shared_links};
///
/// let mut topology = GpuTopology::new(0..3);
/// let switch = topology.add_switch();
/// let kind = InterconnectType::NvSwitch { generation: None, links: 18 };
/// for device in 0..3 {
///     topology.set_switch_link_both(SwitchLink::new(device, switch, kind))?;
/// }
/// let table = RouteTable::build(&topology, &|_| true);
/// let route = |from, to| table.route(from, to, 4096).map(|route| route.to_route());
/// let shared = shared_links([route(0, 2), route(1, 2), route(2, 0)].iter().flatten());
/// // Two of them end on the link from the switch to device 2.
/// assert_eq!((shared.len(), shared[0].to, shared[0].routes), (1, 2.into(), 2));
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
pub fn shared_links(routes: impl IntoIterator<Item = impl Borrow<Route>>) -> Vec<SharedLink> {
    let mut uses = BTreeMap::new();
    for route in routes {
        for link in route.borrow().links() {
            *uses.entry(link).or_insert(0) += 1;
        }
    }
    let shared = uses.into_iter().filter(|&(_, routes)| routes > 1);
    shared.map(|((from, to), routes)| SharedLink { from, to, routes }).collect()
}
