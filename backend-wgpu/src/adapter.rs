//! What an adapter is, and listing a card once that several APIs show.

use std::fmt;

#[cfg(test)]
mod tests;

/// A graphics API through which wgpu reaches adapters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// Vulkan: Linux, Windows, Android.
    Vulkan,
    /// Metal: macOS and iOS.
    Metal,
    /// Direct3D 12: Windows.
    Dx12,
}

impl Api {
    /// All of them; where a card is reachable through several, the earlier one is preferred.
    pub(crate) const ALL: [Self; 3] = [Self::Vulkan, Self::Metal, Self::Dx12];

    pub(crate) fn to_wgpu(self) -> wgpu::Backends {
        match self {
            Self::Vulkan => wgpu::Backends::VULKAN,
            Self::Metal => wgpu::Backends::METAL,
            Self::Dx12 => wgpu::Backends::DX12,
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vulkan => "Vulkan",
            Self::Metal => "Metal",
            Self::Dx12 => "DX12",
        })
    }
}

/// What kind of processor an adapter is, as its driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the memory of the CPU.
    Integrated,
    /// A GPU that a hypervisor lends.
    Virtual,
    /// Software on the CPU, such as lavapipe or WARP.
    Cpu,
    /// The driver does not say.
    Unknown,
}

impl From<wgpu::DeviceType> for AdapterKind {
    fn from(kind: wgpu::DeviceType) -> Self {
        match kind {
            wgpu::DeviceType::DiscreteGpu => Self::Discrete,
            wgpu::DeviceType::IntegratedGpu => Self::Integrated,
            wgpu::DeviceType::VirtualGpu => Self::Virtual,
            wgpu::DeviceType::Cpu => Self::Cpu,
            wgpu::DeviceType::Other => Self::Unknown,
        }
    }
}

impl fmt::Display for AdapterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Discrete => "discrete",
            Self::Integrated => "integrated",
            Self::Virtual => "virtual",
            Self::Cpu => "cpu",
            Self::Unknown => "unknown kind",
        })
    }
}

/// One adapter of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// The name that the driver gives it, such as `NVIDIA H200`.
    pub name: String,
    /// What kind of processor it is.
    pub kind: AdapterKind,
    /// Its PCI address in the form `0000:01:00.0`, where the driver reports one.
    pub pci_address: Option<String>,
    /// The PCI number of its vendor, or what the API gives in its place.
    pub vendor_id: u32,
    /// The PCI number of its model, or what the API gives in its place.
    pub device_id: u32,
    /// The ways to reach it, the preferred one first; never empty.
    pub accesses: Vec<Access>,
}

/// A way to reach an adapter: an API and the driver that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The API.
    pub api: Api,
    /// Name and version of the driver; empty where the API reports none.
    pub driver: String,
}

impl Adapter {
    pub(crate) fn new(api: Api, info: wgpu::AdapterInfo) -> Self {
        let driver = [info.driver, info.driver_info]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        Self {
            name: info.name,
            kind: info.device_type.into(),
            pci_address: Some(info.device_pci_bus_id).filter(|address| !address.is_empty()),
            vendor_id: info.vendor,
            device_id: info.device,
            accesses: vec![Access { api, driver }],
        }
    }

    fn is_same_model(&self, other: &Self) -> bool {
        (self.vendor_id, self.device_id, self.kind)
            == (other.vendor_id, other.device_id, other.kind)
    }

    /// Whether both have an address, and the same.
    fn has_address_of(&self, other: &Self) -> bool {
        self.pci_address.is_some() && self.pci_address == other.pci_address
    }

    /// Whether the two, listed by different APIs, can be one card.
    fn can_be(&self, other: &Self) -> bool {
        match (&self.pci_address, &other.pci_address) {
            (Some(mine), Some(theirs)) => mine == theirs,
            _ => self.is_same_model(other),
        }
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}", self.name, self.kind)?;
        if let Some(address) = &self.pci_address {
            write!(f, ", PCI {address}")?;
        }
        f.write_str(")")?;
        for (index, Access { api, driver }) in self.accesses.iter().enumerate() {
            f.write_str(if index == 0 { " through " } else { " and " })?;
            write!(f, "{api}")?;
            if !driver.is_empty() {
                write!(f, " [{driver}]")?;
            }
        }
        Ok(())
    }
}

/// Adds what one API lists to what the APIs before it listed; a card that is known gains an access.
///
/// Cards are matched by PCI address, those that one API lists among themselves too. Where one side reports none, cards of one model are matched in
/// the order in which they are listed: which of two twins is which cannot be told, but their number
/// is right. Says of each listed card whether it was new, and so became the last of those known.
pub(crate) fn merge(known: &mut Vec<Adapter>, mut listed: Vec<Adapter>) -> Vec<bool> {
    forget_ambiguous_addresses(&mut listed);
    let mut is_matched = vec![false; known.len()];
    let mut is_new = Vec::new();
    for adapter in listed {
        // Two drivers of one API can show one card, so an address joins whatever was matched.
        let same = known.iter().position(|other| adapter.has_address_of(other)).or_else(|| {
            let mut free = (0..is_matched.len()).filter(|index| !is_matched[*index]);
            free.find(|index| adapter.can_be(&known[*index]))
        });
        is_new.push(same.is_none());
        match same {
            Some(index) => {
                if let Some(is_matched) = is_matched.get_mut(index) {
                    *is_matched = true;
                }
                known[index].accesses.extend(adapter.accesses);
                let address = known[index].pci_address.take();
                known[index].pci_address = address.or(adapter.pci_address);
            }
            None => known.push(adapter),
        }
    }
    is_new
}

/// DX12 gives every card of one model the address of the first, so a twin's address says nothing.
fn forget_ambiguous_addresses(listed: &mut [Adapter]) {
    let is_dx12_twin = |adapter: &Adapter| {
        adapter.accesses[0].api == Api::Dx12
            && listed.iter().filter(|other| other.is_same_model(adapter)).count() > 1
    };
    let ambiguous: Vec<bool> = listed.iter().map(is_dx12_twin).collect();
    for (adapter, is_ambiguous) in listed.iter_mut().zip(ambiguous) {
        if is_ambiguous {
            adapter.pci_address = None;
        }
    }
}
