//! Links: between two devices, and between a device and the host.

use crate::{Figure, InterconnectType};

/// A directed link from one device to another.
///
/// The way back is a connection of its own, with its own figures.
///
/// ```
/// use hopwise_topology::{Figure, GpuConnection, InterconnectType};
///
/// let link = GpuConnection::new(0, 1, InterconnectType::PcieSwitch)
///     .with_bandwidth(Figure::measured(24.5, 1_700_000_000)?)
///     .with_latency(Figure::reported(2.0, "vendor")?)
///     .with_peer_access(true);
/// assert_eq!(link.bandwidth.value(), Some(24.5));
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GpuConnection {
    /// Index of the sending device.
    pub from: usize,
    /// Index of the receiving device.
    pub to: usize,
    /// What joins the two.
    pub kind: InterconnectType,
    /// GB/s (10^9 bytes per second) in this direction.
    pub bandwidth: Figure,
    /// Microseconds until the first byte arrives.
    pub latency: Figure,
    /// Whether bytes can go from memory to memory over this link, without a stop in the host.
    /// Only then does a route use it.
    pub peer_access: bool,
}

impl GpuConnection {
    /// A link whose figures are unknown, with peer access if the kind
    /// [implies it](InterconnectType::implies_peer_access).
    pub const fn new(from: usize, to: usize, kind: InterconnectType) -> Self {
        Self {
            from,
            to,
            kind,
            bandwidth: Figure::unknown(),
            latency: Figure::unknown(),
            peer_access: kind.implies_peer_access(),
        }
    }

    /// Sets the bandwidth, in GB/s in this direction.
    #[must_use]
    pub fn with_bandwidth(self, bandwidth: Figure) -> Self {
        Self { bandwidth, ..self }
    }

    /// Sets the latency, in microseconds.
    #[must_use]
    pub fn with_latency(self, latency: Figure) -> Self {
        Self { latency, ..self }
    }

    /// Says whether bytes can go from memory to memory over this link.
    #[must_use]
    pub fn with_peer_access(self, peer_access: bool) -> Self {
        Self { peer_access, ..self }
    }

    /// The same link in the other direction.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { from: self.to, to: self.from, ..self.clone() }
    }
}

/// The link between a device and host memory, in both directions.
///
/// ```
/// use hopwise_topology::{Figure, HostLink, InterconnectType};
///
/// let link = HostLink::new(0, InterconnectType::Pcie { generation: Some(4), lanes: Some(16) })
///     .with_bandwidth(Figure::reported(24.0, "lspci")?);
/// assert_eq!(link.to_host.bandwidth, link.from_host.bandwidth);
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HostLink {
    /// Index of the device.
    pub device: usize,
    /// What joins it to the host.
    pub kind: InterconnectType,
    /// Figures from the device to host memory.
    pub to_host: LinkFigures,
    /// Figures from host memory to the device.
    pub from_host: LinkFigures,
}

impl HostLink {
    /// A link whose figures are unknown.
    pub const fn new(device: usize, kind: InterconnectType) -> Self {
        Self { device, kind, to_host: LinkFigures::unknown(), from_host: LinkFigures::unknown() }
    }

    /// Sets the bandwidth of both directions, in GB/s each.
    #[must_use]
    pub fn with_bandwidth(mut self, bandwidth: Figure) -> Self {
        self.to_host.bandwidth = bandwidth.clone();
        self.from_host.bandwidth = bandwidth;
        self
    }

    /// Sets the latency of both directions, in microseconds.
    #[must_use]
    pub fn with_latency(mut self, latency: Figure) -> Self {
        self.to_host.latency = latency.clone();
        self.from_host.latency = latency;
        self
    }
}

/// Bandwidth and latency of one direction of a [`HostLink`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFigures {
    /// GB/s (10^9 bytes per second).
    pub bandwidth: Figure,
    /// Microseconds until the first byte arrives.
    pub latency: Figure,
}

impl LinkFigures {
    /// Nothing is known.
    pub const fn unknown() -> Self {
        Self { bandwidth: Figure::unknown(), latency: Figure::unknown() }
    }
}
