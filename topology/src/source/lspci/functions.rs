//! The functions of a drawing with their addresses, and what they hang on.

use std::collections::BTreeMap;

use super::super::pci_tree::{Bridge, BusRange, PciTree, Root};
use super::drawing::{Above, Bus, Drawing, Function};
use crate::{Observations, PciAddress};

/// A function that is no bridge.
pub(super) struct Endpoint<'a> {
    pub(super) address: PciAddress,
    /// Its place among the bridges, if that is known.
    pub(super) place: Option<usize>,
    pub(super) is_on_root_bus: bool,
    pub(super) name: &'a str,
}

/// The functions of which the address is certain, by address.
pub(super) fn endpoints<'a>(
    drawing: &Drawing<'a>,
    tree: &mut PciTree,
    observed: &mut Observations,
) -> Vec<Endpoint<'a>> {
    let places = places(drawing, tree, observed);
    let mut endpoints: Vec<Endpoint<'a>> = Vec::new();
    for function in drawing.functions.iter().filter(|function| !function.is_bridge) {
        let bus = &drawing.buses[function.bus];
        if let Place::Known(place) = places[function.bus] {
            endpoints.push(Endpoint {
                address: address(bus, function),
                place,
                is_on_root_bus: bus.above == Above::HostBridge,
                name: function.name,
            });
        }
    }
    endpoints.sort_by_key(|endpoint| endpoint.address);
    endpoints
}

#[derive(Clone, Copy)]
enum Place {
    /// The number of the bus is certain. What it hangs on is where there is a place.
    Known(Option<usize>),
    /// Not even the number is.
    Doubtful,
}

/// For each bus, where it is. A bus comes after the one above it.
fn places(drawing: &Drawing<'_>, tree: &mut PciTree, observed: &mut Observations) -> Vec<Place> {
    let mut listed: BTreeMap<(u32, u8), usize> = BTreeMap::new();
    for bus in &drawing.buses {
        *listed.entry((bus.domain, bus.number)).or_default() += 1;
    }
    let mut places: Vec<Place> = Vec::with_capacity(drawing.buses.len());
    for bus in &drawing.buses {
        let is_one = listed.get(&(bus.domain, bus.number)) == Some(&1);
        let place = if is_one { place(drawing, &places, bus, tree) } else { Place::Doubtful };
        if matches!(place, Place::Doubtful) {
            let text = format!(
                "bus {:04x}:{:02x} is there twice, or not among the buses above it; what is on it \
                 is left out",
                bus.domain, bus.number
            );
            observed.warn(bus.line, text);
        }
        places.push(place);
    }
    places
}

fn place(drawing: &Drawing<'_>, places: &[Place], bus: &Bus, tree: &mut PciTree) -> Place {
    let buses = BusRange { domain: bus.domain, first: bus.number, last: bus.last };
    let bridge = match bus.above {
        Above::HostBridge => {
            let root = Root { buses, numa_nodes: Vec::new(), cpu_affinity: None };
            return Place::Known(Some(tree.add_root(root)));
        }
        Above::Unknown => return Place::Known(None),
        Above::Bridge(function) => &drawing.functions[function],
    };
    let bus_above = &drawing.buses[bridge.bus];
    let around =
        BusRange { domain: bus_above.domain, first: bus_above.number, last: bus_above.last };
    match places[bridge.bus] {
        // A tree that starts in its middle does not show what is around.
        Place::Known(None) => Place::Known(None),
        Place::Known(Some(above)) if around.has_below(buses) => {
            let address = address(bus_above, bridge);
            Place::Known(Some(tree.add_bridge(above, Bridge { address, buses, uplink: None })))
        }
        Place::Known(Some(_)) | Place::Doubtful => Place::Doubtful,
    }
}

const fn address(bus: &Bus, function: &Function<'_>) -> PciAddress {
    PciAddress {
        domain: bus.domain,
        bus: bus.number,
        device: function.device,
        function: function.function,
    }
}
