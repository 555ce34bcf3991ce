//! What is connected to what in a multi-GPU machine: what tools print, read and joined; a link
//! graph whose figures have a provenance; routes, flow, drawings.
//!
//! ```text
//!   text, directories -- read_text, read_path --> Reading --+
//!   this machine ------- discover -----------> Reading -----+--> Machine --+--> table, tree,
//!                                                                          |    DOT, SVG, JSON
//!   facts about devices -- estimate --+                     topology() ----+    changes_since
//!   by hand -------- set_connection --+--> GpuTopology --> RouteTable --> Route
//!                                               |
//!                                               +--> max flow, bisection bandwidth
//! ```
//!
//! - [`Machine`] is everything that the sources about one machine say, joined.
//! - [`GpuTopology`] holds the devices of one machine, the directed links and switches between
//!   them, and their links to the host: what programs use.
//! - Every [`Figure`] knows where it comes from. An unknown figure is neither zero nor "no link",
//!   and is never the best; an estimate never looks like a measurement.
//! - [`RouteTable`] holds the best routes between all devices: true shortest paths, which go
//!   through other devices where that is faster and allowed.
//!
//! ```
//! use hopwise_topology::{
//!     Figure, GpuConnection, GpuTopology, InterconnectType, RouteKind, RouteTable,
//! };
//!
//! // 0 and 2 are joined by a slow direct link, and by two fast ones through 1.
//! let mut topology = GpuTopology::new(0..3);
//! let nvlink = InterconnectType::NvLink { generation: Some(3), links: 12 };
//! let link = |from, to, kind, gb_per_s| {
//!     Ok::<_, hopwise_topology::TopologyError>(
//!         GpuConnection::new(from, to, kind)
//!             .with_bandwidth(Figure::measured(gb_per_s, 1_700_000_000)?)
//!             .with_latency(Figure::measured(2.0, 1_700_000_000)?)
//!             .with_peer_access(true),
//!     )
//! };
//! topology.set_connection(link(0, 1, nvlink, 300.0)?)?;
//! topology.set_connection(link(1, 2, nvlink, 300.0)?)?;
//! topology.set_connection(link(0, 2, InterconnectType::HostBridge, 25.0)?)?;
//!
//! let routes = RouteTable::build(&topology, &|_| true);
//! let kind = |bytes| routes.route(0, 2, bytes).map(|route| route.kind);
//! assert_eq!(kind(4096), Some(RouteKind::Direct));
//! assert_eq!(kind(1 << 30), Some(RouteKind::MultiHop));
//! # Ok::<(), hopwise_topology::TopologyError>(())
//! ```

#![forbid(unsafe_code)]

pub use bisection::{Bisection, BisectionBound, EXACT_BISECTION_DEVICES};
pub use connection::{GpuConnection, HostLink, LinkFigures};
pub use diff::{Change, Severity};
pub use discover::{DiscoverOptions, Discovery, discover};
pub use error::TopologyError;
pub use estimate::DeviceFacts;
pub use figure::{Figure, Provenance, Quality};
pub use flow::MaxFlow;
pub use graph::GpuTopology;
pub use interconnect::InterconnectType;
pub use machine::Machine;
pub use observation::{
    ChannelGraph, Label, Link, Node, NodeKind, Observations, Pair, PcieWidth, PeerCapability,
    PeerStatus, SourceWarning, Statement, Tool, Uplink,
};
pub use pci_address::{PciAddress, PciAddressError};
pub use route::{CHUNK_BYTES, Route, RouteKind, RouteRef, RouteTable, SharedLink, shared_links};
pub use source::{
    Entry, FileTree, FileTreeError, Format, ReadError, Reading, SourceError, read_bytes, read_path,
    read_text, read_tree,
};
pub use switch::{End, SwitchId, SwitchLink};
pub use warning::TopologyWarning;

mod graph;

mod connection;
mod figure;
mod interconnect;
mod switch;

mod diff;
mod discover;
mod draw;
mod machine;
mod merge;
mod observation;
mod pci_address;
mod source;

mod bisection;
mod flow;
mod route;

mod estimate;
mod json;
mod table;
mod warning;

mod error;
