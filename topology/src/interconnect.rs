//! Kinds of links, with the class names that people know.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What joins two devices, or a device and the host.
///
/// Serialises as in the JSON document: `"pix"`, `{"nvlink": {"links": 12}}`.
///
/// ```
/// use hopwise_topology::InterconnectType;
///
/// let bridge = InterconnectType::NvLink { generation: Some(3), links: 12 };
/// assert_eq!(bridge.class_name(), "NV12");
/// assert_eq!(InterconnectType::System.class_name(), "SYS");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum InterconnectType {
    /// NVLink from GPU to GPU.
    #[serde(rename = "nvlink")]
    NvLink {
        /// Generation, 1 (P100) to 5 (B200). Not NVML's version number, which is an enumeration.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<u8>,
        /// How many links are bonded.
        links: u16,
    },
    /// NVLink through NVSwitches.
    #[serde(rename = "nvswitch")]
    NvSwitch {
        /// Generation of the NVLinks, as for [`NvLink`](Self::NvLink).
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<u8>,
        /// How many links lead from each GPU to the switches.
        links: u16,
    },
    /// AMD's Infinity Fabric (xGMI) from GPU to GPU.
    InfinityFabric {
        /// How many links are bonded.
        links: u16,
    },
    /// Intel's Xe Link from GPU to GPU.
    XeLink {
        /// How many links are bonded.
        links: u16,
    },
    /// Xe Link, but not directly: through another tile.
    #[serde(rename = "xe_link_indirect")]
    XeLinkIndirect,
    /// The fabric between the tiles of one Intel card.
    #[serde(rename = "tile_fabric")]
    TileFabric,
    /// NVLink-C2C, between the CPU and the GPU of one module.
    #[serde(rename = "nvlink_c2c")]
    NvLinkC2c,
    /// PCIe over at most one switch.
    #[serde(rename = "pix")]
    PcieSwitch,
    /// PCIe over several switches, but no host bridge.
    #[serde(rename = "pxb")]
    PcieSwitches,
    /// PCIe over one host bridge.
    #[serde(rename = "phb")]
    HostBridge,
    /// PCIe and the interconnect between the host bridges of one NUMA node.
    Node,
    /// PCIe and the interconnect between NUMA nodes.
    #[serde(rename = "sys")]
    System,
    /// PCIe, by a way that is not known.
    Pcie {
        /// Generation, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Option<u8>,
        /// Lanes, 1 to 32.
        #[serde(skip_serializing_if = "Option::is_none")]
        lanes: Option<u8>,
    },
    /// Host memory: both ends keep their data there.
    HostMemory,
    /// There is a link, and nothing says what it is.
    Unknown,
}

impl InterconnectType {
    /// The class as topology tools print it: `NV12`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, `XGMI`,
    /// `XL16`, `C2C`; beyond those `PCIE`, `MEM`, and `?` for an unknown kind.
    ///
    /// NVSwitch shows as `NV#` too, where # counts the links of one GPU.
    pub fn class_name(self) -> String {
        match self {
            Self::NvLink { links, .. } | Self::NvSwitch { links, .. } => format!("NV{links}"),
            Self::XeLink { links } => format!("XL{links}"),
            Self::XeLinkIndirect => "XL*".to_owned(),
            Self::TileFabric => "MDF".to_owned(),
            Self::InfinityFabric { .. } => "XGMI".to_owned(),
            Self::NvLinkC2c => "C2C".to_owned(),
            Self::PcieSwitch => "PIX".to_owned(),
            Self::PcieSwitches => "PXB".to_owned(),
            Self::HostBridge => "PHB".to_owned(),
            Self::Node => "NODE".to_owned(),
            Self::System => "SYS".to_owned(),
            Self::Pcie { .. } => "PCIE".to_owned(),
            Self::HostMemory => "MEM".to_owned(),
            Self::Unknown => "?".to_owned(),
        }
    }

    /// Whether such a link, by its nature, gives each end access to the other's memory.
    ///
    /// True of the fabrics made for it (NVLink, NVSwitch, Infinity Fabric, Xe Link) and of shared
    /// host memory. Over PCIe it depends on the driver and the machine, so it is false here.
    /// A connection takes this as the default, which whoever has tested the link overrides.
    pub const fn implies_peer_access(self) -> bool {
        matches!(
            self,
            Self::NvLink { .. }
                | Self::NvSwitch { .. }
                | Self::InfinityFabric { .. }
                | Self::XeLink { .. }
                | Self::TileFabric
                | Self::HostMemory
        )
    }

    /// Whether a device relays between two such links, so that a route may go on over them.
    ///
    /// True of the fabrics that lead from GPU to GPU or to a switch of theirs. All other links
    /// serve their two ends only, also where these have access to each other:
    ///
    /// - The PCIe way between two devices is the shortest that the tree has, and a relay would
    ///   cross its own PCIe link twice.
    /// - Two links through host memory in a row are two bounces, where one is always possible.
    pub const fn carries_relays(self) -> bool {
        matches!(
            self,
            Self::NvLink { .. }
                | Self::NvSwitch { .. }
                | Self::InfinityFabric { .. }
                | Self::XeLink { .. }
                | Self::TileFabric
        )
    }

    /// The kind of a pair that is joined by two links, one to a switch and one from it: that of
    /// the narrower link. NVLinks make `NvSwitch`; two kinds that have nothing in common make
    /// `Unknown`.
    pub(crate) fn across_switch(self, onward: Self) -> Self {
        let lesser = |a: Option<u8>, b: Option<u8>| a.zip(b).map(|(a, b)| a.min(b));
        match (self, onward) {
            (
                Self::NvLink { generation: into, links: up }
                | Self::NvSwitch { generation: into, links: up },
                Self::NvLink { generation: out, links: down }
                | Self::NvSwitch { generation: out, links: down },
            ) => {
                let (generation, links) = if up <= down { (into, up) } else { (out, down) };
                Self::NvSwitch { generation, links }
            }
            (Self::InfinityFabric { links: up }, Self::InfinityFabric { links: down }) => {
                Self::InfinityFabric { links: up.min(down) }
            }
            (Self::XeLink { links: up }, Self::XeLink { links: down }) => {
                Self::XeLink { links: up.min(down) }
            }
            (
                Self::Pcie { generation: into, lanes: up },
                Self::Pcie { generation: out, lanes: down },
            ) => Self::Pcie { generation: lesser(into, out), lanes: lesser(up, down) },
            _ if self == onward => self,
            _ => Self::Unknown,
        }
    }

    /// How many links are bonded, where the kind counts them.
    pub const fn link_count(self) -> Option<u16> {
        match self {
            Self::NvLink { links, .. }
            | Self::NvSwitch { links, .. }
            | Self::InfinityFabric { links }
            | Self::XeLink { links } => Some(links),
            _ => None,
        }
    }

    /// Links of one family between two nodes are one link.
    pub(crate) const fn family(self) -> u8 {
        match self {
            Self::NvLink { .. } | Self::NvSwitch { .. } => 0,
            Self::InfinityFabric { .. } => 1,
            Self::XeLink { .. } | Self::XeLinkIndirect => 2,
            Self::TileFabric => 3,
            Self::NvLinkC2c => 4,
            Self::HostMemory => 5,
            Self::Unknown => 6,
            _ => 7,
        }
    }

    /// Generation of its NVLinks or of PCIe, if it has one and it is known.
    pub(crate) const fn generation(self) -> Option<u8> {
        match self {
            Self::NvLink { generation, .. }
            | Self::NvSwitch { generation, .. }
            | Self::Pcie { generation, .. } => generation,
            _ => None,
        }
    }

    /// The same kind with this generation, unless it has one or can have none.
    pub(crate) fn or_generation(mut self, known: Option<u8>) -> Self {
        if let Self::NvLink { generation, .. }
        | Self::NvSwitch { generation, .. }
        | Self::Pcie { generation, .. } = &mut self
        {
            *generation = generation.or(known);
        }
        self
    }

    /// Whether the kind states a number of links or lanes, and states zero.
    pub(crate) const fn is_empty(self) -> bool {
        match self {
            Self::NvLink { links, .. }
            | Self::NvSwitch { links, .. }
            | Self::InfinityFabric { links }
            | Self::XeLink { links } => links == 0,
            Self::Pcie { lanes: Some(lanes), .. } => lanes == 0,
            _ => false,
        }
    }
}

/// The class name.
impl fmt::Display for InterconnectType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.class_name())
    }
}
