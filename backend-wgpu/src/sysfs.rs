//! What Linux says about a PCI device: its NUMA node and its link.

use std::fs;
use std::path::Path;

use hopwise_core::device_info::PcieLink;

/// Where Linux shows PCI devices. Absent elsewhere, and then nothing is known.
pub(crate) const PCI_DEVICES: &str = "/sys/bus/pci/devices";

/// NUMA node of a device; `None` where the machine has no such nodes or does not say.
pub(crate) fn numa_node(devices: &Path, address: &str) -> Option<u32> {
    read(devices, address, "numa_node")?.parse().ok() // -1: unknown
}

/// The link at its best: an idle card trains its link down, so the present speed says nothing.
pub(crate) fn pcie_link(devices: &Path, address: &str) -> Option<PcieLink> {
    let speed = read(devices, address, "max_link_speed")?;
    let lanes = read(devices, address, "max_link_width")?.parse().ok()?;
    let generation = match speed.split(' ').next()? {
        "2.5" => 1,
        "5" | "5.0" => 2,
        "8" | "8.0" => 3,
        "16" | "16.0" => 4,
        "32" | "32.0" => 5,
        "64" | "64.0" => 6,
        _ => return None,
    };
    Some(PcieLink { generation, lanes })
}

fn read(devices: &Path, address: &str, file: &str) -> Option<String> {
    let address = address.to_ascii_lowercase();
    let text = fs::read_to_string(devices.join(address).join(file)).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_where_they_are() {
        let devices = tempfile::tempdir().unwrap();
        let device = devices.path().join("0000:0a:00.0");
        fs::create_dir(&device).unwrap();
        let write = |file: &str, text: &str| fs::write(device.join(file), text).unwrap();
        write("numa_node", "1\n");
        write("max_link_speed", "32.0 GT/s PCIe\n");
        write("max_link_width", "16\n");
        let found = pcie_link(devices.path(), "0000:0A:00.0");
        assert_eq!(found, Some(PcieLink { generation: 5, lanes: 16 }));
        assert_eq!(numa_node(devices.path(), "0000:0a:00.0"), Some(1));
        write("numa_node", "-1\n");
        write("max_link_speed", "Unknown\n");
        assert_eq!(numa_node(devices.path(), "0000:0a:00.0"), None);
        assert_eq!(pcie_link(devices.path(), "0000:0a:00.0"), None);
        assert_eq!(pcie_link(devices.path(), "0000:0b:00.0"), None);
    }
}
