//! Switches, and the links that lead to them.

use std::fmt;

use crate::{Figure, InterconnectType};

/// A switch of a topology: an NVSwitch, a network switch, a PCIe switch. It relays always, holds no
/// kernels and is no device.
///
/// Switches of one topology are numbered from 0 in the order in which they were added, and stay.
///
/// ```
/// use hopwise_topology::{GpuTopology, SwitchId};
///
/// let mut topology = GpuTopology::new(0..2);
/// let switch = topology.add_switch();
/// assert_eq!(switch, SwitchId::new(0));
/// assert_eq!(switch.to_string(), "switch 0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(usize);

impl SwitchId {
    /// The switch with this number.
    pub const fn new(number: usize) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> usize {
        self.0
    }
}

/// `switch 3`
impl fmt::Display for SwitchId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "switch {}", self.0)
    }
}

/// What is at the end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The device with this index.
    Device(usize),
    /// A switch.
    Switch(SwitchId),
}

impl From<usize> for End {
    fn from(device: usize) -> Self {
        Self::Device(device)
    }
}

impl From<SwitchId> for End {
    fn from(switch: SwitchId) -> Self {
        Self::Switch(switch)
    }
}

/// `device 0`, `switch 3`
impl fmt::Display for End {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(index) => write!(formatter, "device {index}"),
            Self::Switch(switch) => switch.fmt(formatter),
        }
    }
}

/// A directed link that has a switch at one end, or at both.
///
/// The way back is a link of its own. Bytes pass a switch without a stop, so such a link gives the
/// devices behind it access to each other.
///
/// ```
/// use hopwise_topology::{Figure, GpuTopology, InterconnectType, SwitchLink};
///
/// let mut topology = GpuTopology::new(0..2);
/// let switch = topology.add_switch();
/// let kind = InterconnectType::NvSwitch { generation: Some(4), links: 18 };
/// for device in 0..2 {
///     let link = SwitchLink::new(device, switch, kind)
///         .with_bandwidth(Figure::reported(450.0, "vendor")?);
///     topology.set_switch_link_both(link)?;
/// }
/// let connection = topology.connection(0, 1).expect("they share a switch");
/// assert_eq!(connection.kind.class_name(), "NV18");
/// # Ok::<(), hopwise_topology::TopologyError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SwitchLink {
    /// What sends.
    pub from: End,
    /// What receives.
    pub to: End,
    /// What joins the two.
    pub kind: InterconnectType,
    /// GB/s (10^9 bytes per second) in this direction.
    pub bandwidth: Figure,
    /// Microseconds that it adds until the first byte arrives, the switch's own included.
    pub latency: Figure,
}

impl SwitchLink {
    /// A link whose figures are unknown.
    pub fn new(from: impl Into<End>, to: impl Into<End>, kind: InterconnectType) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            kind,
            bandwidth: Figure::unknown(),
            latency: Figure::unknown(),
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

    /// The same link in the other direction.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self { from: self.to, to: self.from, ..self.clone() }
    }
}
