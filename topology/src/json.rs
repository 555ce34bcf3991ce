//! Our own JSON: strict reading, exact writing. The format is described in
//! `docs/topology-json.md`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Figure, GpuConnection, GpuTopology, HostLink, InterconnectType, TopologyError};
use place::Place;
use switches::{SwitchEntry, SwitchLinkEntry};

pub(crate) mod figure;
mod object;
mod place;
mod switches;
#[cfg(test)]
mod tests;

/// The value of `format` in every document.
const FORMAT: &str = "hopwise-topology";

/// The only version so far.
const VERSION: u32 = 1;

/// A document whose entries are still text, so that an error can say where its entry stands.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'a> {
    #[serde(borrow)]
    format: &'a RawValue,
    #[serde(borrow)]
    version: &'a RawValue,
    #[serde(borrow)]
    devices: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    switches: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    host_links: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    connections: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    switch_links: Vec<&'a RawValue>,
}

#[derive(Serialize)]
struct WrittenDocument {
    format: &'static str,
    version: u32,
    devices: Vec<DeviceEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switches: Vec<SwitchEntry>,
    host_links: Vec<HostLinkEntry>,
    connections: Vec<ConnectionEntry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    switch_links: Vec<SwitchLinkEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceEntry {
    index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa_node: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostLinkEntry {
    device: usize,
    kind: InterconnectType,
    #[serde(
        default,
        deserialize_with = "object::deserialize",
        skip_serializing_if = "LinkEntry::is_unknown"
    )]
    to_host: LinkEntry,
    #[serde(
        default,
        deserialize_with = "object::deserialize",
        skip_serializing_if = "LinkEntry::is_unknown"
    )]
    from_host: LinkEntry,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkEntry {
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    bandwidth_gb_per_s: Figure,
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    latency_us: Figure,
}

impl LinkEntry {
    fn is_unknown(&self) -> bool {
        self.bandwidth_gb_per_s.is_unknown() && self.latency_us.is_unknown()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionEntry {
    from: usize,
    to: usize,
    /// The entry stands for the way back too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    both_ways: bool,
    kind: InterconnectType,
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    bandwidth_gb_per_s: Figure,
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    latency_us: Figure,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_access: Option<bool>,
}

impl GpuTopology {
    /// Reads a topology from a JSON document.
    ///
    /// ```
    /// use hopwise_topology::GpuTopology;
    ///
    /// let topology = GpuTopology::from_json(r#"{
    ///     "format": "hopwise-topology", "version": 1,
    ///     "devices": [{ "index": 0 }, { "index": 1 }],
    ///     "connections": [{
    ///         "from": 0, "to": 1, "both_ways": true, "kind": { "nvlink": { "links": 4 } },
    ///         "bandwidth_gb_per_s": { "value": 100, "reported_by": "nvidia-smi nvlink -s" }
    ///     }]
    /// }"#)?;
    /// assert_eq!(GpuTopology::from_json(&topology.to_json())?, topology);
    /// # Ok::<(), hopwise_topology::TopologyError>(())
    /// ```
    ///
    /// # Errors
    /// [`TopologyError::Json`] with line and column, if the text is not JSON, has a field that the
    /// format does not, lacks one that it needs, or describes something that
    /// [`set_connection`](Self::set_connection) and its kin refuse, or describes it twice.
    pub fn from_json(text: &str) -> Result<Self, TopologyError> {
        let document: Document<'_> = Place::whole(text).read_object()?;
        check_header(text, &document)?;
        let mut topology = Self::new([]);
        for raw in document.devices {
            let place = Place::of(raw, text);
            let entry: DeviceEntry = place.read_object()?;
            topology.add_device(entry.index).map_err(|error| place.refuse(error))?;
            topology
                .set_numa_node(entry.index, entry.numa_node)
                .map_err(|error| place.refuse(error))?;
        }
        for raw in document.switches {
            topology.read_switch(&Place::of(raw, text))?;
        }
        for raw in document.host_links {
            topology.read_host_link(&Place::of(raw, text))?;
        }
        for raw in document.connections {
            topology.read_connection(&Place::of(raw, text))?;
        }
        for raw in document.switch_links {
            topology.read_switch_link(&Place::of(raw, text))?;
        }
        Ok(topology)
    }

    fn read_host_link(&mut self, place: &Place<'_>) -> Result<(), TopologyError> {
        let entry: HostLinkEntry = place.read_object()?;
        let device = entry.device;
        if self.host_link(device).is_some() {
            let reason = format!("the host link of device {device} is given twice; remove one");
            return Err(place.refuse(reason));
        }
        let mut link = HostLink::new(device, entry.kind);
        for (figures, entry) in
            [(&mut link.to_host, entry.to_host), (&mut link.from_host, entry.from_host)]
        {
            figures.bandwidth = entry.bandwidth_gb_per_s;
            figures.latency = entry.latency_us;
        }
        self.set_host_link(link).map_err(|error| place.refuse(error))
    }

    fn read_connection(&mut self, place: &Place<'_>) -> Result<(), TopologyError> {
        let entry: ConnectionEntry = place.read_object()?;
        let mut link = GpuConnection::new(entry.from, entry.to, entry.kind)
            .with_bandwidth(entry.bandwidth_gb_per_s)
            .with_latency(entry.latency_us);
        link.peer_access = entry.peer_access.unwrap_or(link.peer_access);
        let back = entry.both_ways.then(|| link.reversed());
        for link in std::iter::once(link).chain(back) {
            let (from, to) = (link.from, link.to);
            if self.direct_connection(from, to).is_some() {
                let reason = format!(
                    "the connection from device {from} to device {to} is given twice; remove one"
                );
                return Err(place.refuse(reason));
            }
            self.set_connection(link).map_err(|error| place.refuse(error))?;
        }
        Ok(())
    }

    /// Writes the topology as a JSON document that [`from_json`](Self::from_json) reads back to an
    /// equal one. Devices, switches and links are in ascending order, so equal topologies give equal
    /// text.
    #[expect(
        clippy::missing_panics_doc,
        reason = "finite numbers, texts and lists always have a JSON form"
    )]
    pub fn to_json(&self) -> String {
        let document = WrittenDocument {
            format: FORMAT,
            version: VERSION,
            devices: self
                .devices()
                .map(|index| DeviceEntry { index, numa_node: self.numa_node(index) })
                .collect(),
            switches: self.switches().map(SwitchEntry::from).collect(),
            host_links: self
                .devices()
                .filter_map(|device| self.host_link(device))
                .map(HostLinkEntry::from)
                .collect(),
            connections: self.connections().into_iter().map(ConnectionEntry::from).collect(),
            switch_links: self.switch_links().into_iter().map(SwitchLinkEntry::from).collect(),
        };
        serde_json::to_string_pretty(&document).expect("numbers, texts and lists have a JSON form")
    }
}

fn check_header(text: &str, document: &Document<'_>) -> Result<(), TopologyError> {
    let format = Place::of(document.format, text);
    if format.read::<String>()? != FORMAT {
        return Err(format.refuse(format!("`format` is not \"{FORMAT}\"; correct it, or convert")));
    }
    let version = Place::of(document.version, text);
    let stated: u32 = version.read()?;
    if stated != VERSION {
        return Err(version.refuse(format!(
            "version {stated} of the format is not known, only {VERSION}; \
             use a newer hopwise, or write version {VERSION}"
        )));
    }
    Ok(())
}

impl From<HostLink> for HostLinkEntry {
    fn from(link: HostLink) -> Self {
        let entry = |figures: crate::LinkFigures| LinkEntry {
            bandwidth_gb_per_s: figures.bandwidth,
            latency_us: figures.latency,
        };
        Self {
            device: link.device,
            kind: link.kind,
            to_host: entry(link.to_host),
            from_host: entry(link.from_host),
        }
    }
}

impl From<&GpuConnection> for ConnectionEntry {
    fn from(link: &GpuConnection) -> Self {
        Self {
            from: link.from,
            to: link.to,
            both_ways: false,
            kind: link.kind,
            bandwidth_gb_per_s: link.bandwidth.clone(),
            latency_us: link.latency.clone(),
            peer_access: Some(link.peer_access),
        }
    }
}
