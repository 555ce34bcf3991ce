//! Switches and their links in JSON.

use serde::{Deserialize, Serialize};

use super::figure;
use super::place::Place;
use crate::{End, Figure, GpuTopology, InterconnectType, SwitchId, SwitchLink, TopologyError};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchEntry {
    /// Its number. It follows from the place in the list, and is there for people who look it up.
    index: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchLinkEntry {
    from: EndEntry,
    to: EndEntry,
    /// The entry stands for the way back too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    both_ways: bool,
    kind: InterconnectType,
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    bandwidth_gb_per_s: Figure,
    #[serde(default, with = "figure", skip_serializing_if = "Figure::is_unknown")]
    latency_us: Figure,
}

/// `{ "device": 3 }` or `{ "switch": 0 }`
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndEntry {
    Device(usize),
    Switch(usize),
}

impl GpuTopology {
    pub(super) fn read_switch(&mut self, place: &Place<'_>) -> Result<(), TopologyError> {
        let SwitchEntry { index } = place.read_object()?;
        let expected = self.switch_count();
        if index != expected {
            let reason = format!(
                "switch {index} stands where switch {expected} was expected; \
                 number the switches from 0 in the order of the list"
            );
            return Err(place.refuse(reason));
        }
        self.add_switch();
        Ok(())
    }

    pub(super) fn read_switch_link(&mut self, place: &Place<'_>) -> Result<(), TopologyError> {
        let entry: SwitchLinkEntry = place.read_object()?;
        let link = SwitchLink::new(entry.from, entry.to, entry.kind)
            .with_bandwidth(entry.bandwidth_gb_per_s)
            .with_latency(entry.latency_us);
        let back = entry.both_ways.then(|| link.reversed());
        for link in std::iter::once(link).chain(back) {
            let (from, to) = (link.from, link.to);
            if self.switch_link(from, to).is_some() {
                let reason = format!("the link from {from} to {to} is given twice; remove one");
                return Err(place.refuse(reason));
            }
            self.set_switch_link(link).map_err(|error| place.refuse(error))?;
        }
        Ok(())
    }
}

impl From<SwitchId> for SwitchEntry {
    fn from(switch: SwitchId) -> Self {
        Self { index: switch.number() }
    }
}

impl From<&SwitchLink> for SwitchLinkEntry {
    fn from(link: &SwitchLink) -> Self {
        Self {
            from: link.from.into(),
            to: link.to.into(),
            both_ways: false,
            kind: link.kind,
            bandwidth_gb_per_s: link.bandwidth.clone(),
            latency_us: link.latency.clone(),
        }
    }
}

impl From<EndEntry> for End {
    fn from(entry: EndEntry) -> Self {
        match entry {
            EndEntry::Device(index) => Self::Device(index),
            EndEntry::Switch(number) => Self::Switch(SwitchId::new(number)),
        }
    }
}

impl From<End> for EndEntry {
    fn from(end: End) -> Self {
        match end {
            End::Device(index) => Self::Device(index),
            End::Switch(switch) => Self::Switch(switch.number()),
        }
    }
}
