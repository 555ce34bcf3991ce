//! What makes a device that works worse than it should be.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something that is wrong with a device that still works: slow, narrow, or about to fail.
///
/// A degraded device keeps its kernels and goes on; whoever reads this may drain it. What a device
/// does by design is none: clocks that are low because it idles, or because someone set a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degradation {
    /// What part of the device it is about.
    pub kind: DegradationKind,
    /// What was seen, with its figures.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// What part of a device is worse than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DegradationKind {
    /// It slows itself down to stay cool.
    Temperature,
    /// It slows itself down since its supply of power asks for it.
    Power,
    /// Its PCI Express link is narrower or slower than it can be.
    Pcie,
    /// A link of its fabric is down while others are up.
    Fabric,
    /// Its memory has errors that could not be corrected, or parts that wait to be replaced.
    Memory,
    /// Its driver reported a fault that the device has survived.
    Fault,
}

impl fmt::Display for DegradationKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Temperature => "temperature",
            Self::Power => "power",
            Self::Pcie => "PCIe",
            Self::Fabric => "fabric",
            Self::Memory => "memory",
            Self::Fault => "fault",
        })
    }
}

/// `PCIe: 8 of 16 lanes are in use; seat the card again`
impl fmt::Display for Degradation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}; {}", self.kind, self.what, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_where_and_the_remedy() {
        let degradation = Degradation {
            kind: DegradationKind::Pcie,
            what: "8 of 16 lanes are in use".to_owned(),
            remedy: "seat the card again".to_owned(),
        };
        let shown = "PCIe: 8 of 16 lanes are in use; seat the card again";
        assert_eq!(degradation.to_string(), shown);
        let kind = serde_json::to_value(&degradation).expect("it has a JSON form")["kind"].clone();
        assert_eq!(kind, "pcie");
    }
}
