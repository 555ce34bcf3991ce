//! Racks of 72 devices on an NVSwitch, joined by a network in two layers.

use hopwise_topology::{Figure, GpuTopology, InterconnectType, SwitchId, SwitchLink};

/// Devices in one rack.
pub(crate) const RACK: usize = 72;

/// Leaves of the network; device n hangs on leaf n % LEAVES.
pub(crate) const LEAVES: usize = 32;

const SPINES: usize = 16;

const NVLINK: InterconnectType = InterconnectType::NvSwitch { generation: Some(5), links: 18 };

const NIC: InterconnectType = InterconnectType::Pcie { generation: Some(5), lanes: Some(16) };

/// So many devices, each with 900 GB/s to its rack's switch and 50 GB/s to its leaf.
pub(crate) fn fat_tree(devices: usize) -> GpuTopology {
    let mut topology = GpuTopology::new(0..devices);
    let mut add =
        |count: usize| -> Vec<SwitchId> { (0..count).map(|_| topology.add_switch()).collect() };
    let (racks, leaves, spines) = (add(devices.div_ceil(RACK)), add(LEAVES), add(SPINES));
    let mut join = |link: SwitchLink, gb_per_s: f64, latency_us: f64| {
        let figure = |value| Figure::measured(value, 0).expect("it is positive");
        let link = link.with_bandwidth(figure(gb_per_s)).with_latency(figure(latency_us));
        topology.set_switch_link_both(link).expect("both ends are there");
    };
    for device in 0..devices {
        join(SwitchLink::new(device, racks[device / RACK], NVLINK), 900.0, 0.9);
        join(SwitchLink::new(device, leaves[device % LEAVES], NIC), 50.0, 1.5);
    }
    for &leaf in &leaves {
        for &spine in &spines {
            join(SwitchLink::new(leaf, spine, NIC), 100.0, 0.6);
        }
    }
    topology
}
