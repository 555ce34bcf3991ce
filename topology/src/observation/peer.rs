//! Access to a peer's memory, as `nvidia-smi topo -p2p` states it.

use serde::{Deserialize, Serialize};

/// A way of access to another device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerCapability {
    /// Reading (`-p2p r`).
    Read,
    /// Writing (`-p2p w`).
    Write,
    /// Over NVLink (`-p2p n`).
    NvLink,
    /// Atomic operations (`-p2p a`).
    Atomics,
    /// Over PCIe (`-p2p p`).
    Pcie,
}

/// Whether a way of access is there, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeerStatus {
    /// It is there (`OK`).
    Supported,
    /// The chipset does not support it (`CNS`).
    ChipsetNotSupported,
    /// The GPU does not support it (`GNS`).
    GpuNotSupported,
    /// The topology does not support it (`TNS`).
    TopologyNotSupported,
    /// It is not supported (`NS`).
    NotSupported,
    /// Disabled by a registry key (`DR`).
    DisabledByRegistryKey,
    /// The driver does not know (`U`).
    Unknown,
}
