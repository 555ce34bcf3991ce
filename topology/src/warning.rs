//! What a topology says that is possible, but hardly right.

use crate::{End, GpuTopology};

/// Something that whoever supplied the topology should look at. Nothing stops working.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyWarning {
    /// A link has no way back.
    #[error("there is a link from device {from} to device {to}, but none back; check the source")]
    OneWayLink {
        /// Where the link starts.
        from: usize,
        /// Where it ends.
        to: usize,
    },

    /// The two directions of a link are of different kinds.
    #[error(
        "the link between devices {from} and {to} is {there} one way and {back} the other; \
         check the source"
    )]
    KindsDiffer {
        /// The lower of the two indices.
        from: usize,
        /// The higher of the two indices.
        to: usize,
        /// Class name from the lower index to the higher.
        there: String,
        /// Class name of the way back.
        back: String,
    },

    /// Peer access works one way only.
    #[error(
        "device {from} has peer access to device {to}, but not the reverse; \
         check the driver's peer-to-peer report"
    )]
    OneWayPeerAccess {
        /// The device that has access.
        from: usize,
        /// The device that has none.
        to: usize,
    },

    /// A link to or from a switch has no way back.
    #[error("there is a link from {from} to {to}, but none back; check the source")]
    OneWaySwitchLink {
        /// Where the link starts.
        from: End,
        /// Where it ends.
        to: End,
    },

    /// The two directions of a link to a switch are of different kinds.
    #[error(
        "the link between {from} and {to} is {there} one way and {back} the other; check the source"
    )]
    SwitchKindsDiffer {
        /// The lesser of the two ends.
        from: End,
        /// The greater of the two ends.
        to: End,
        /// Class name from the lesser end to the greater.
        there: String,
        /// Class name of the way back.
        back: String,
    },
}

impl GpuTopology {
    /// What looks wrong with the links that were set, first between devices, then at switches, in
    /// the order of the links. An empty list means that nothing does.
    ///
    /// There is no error to report: indices, kinds and figures were checked when they were set.
    /// Costs O(links log links).
    pub fn validate(&self) -> Vec<TopologyWarning> {
        let mut warnings = Vec::new();
        for link in self.connections() {
            let (from, to) = (link.from, link.to);
            let Some(back) = self.direct_connection(to, from) else {
                warnings.push(TopologyWarning::OneWayLink { from, to });
                continue;
            };
            if from < to && link.kind.class_name() != back.kind.class_name() {
                let (there, back) = (link.kind.class_name(), back.kind.class_name());
                warnings.push(TopologyWarning::KindsDiffer { from, to, there, back });
            }
            if link.peer_access && !back.peer_access {
                warnings.push(TopologyWarning::OneWayPeerAccess { from, to });
            }
        }
        for link in self.switch_links() {
            let (from, to) = (link.from, link.to);
            let Some(back) = self.switch_link(to, from) else {
                warnings.push(TopologyWarning::OneWaySwitchLink { from, to });
                continue;
            };
            if from < to && link.kind.class_name() != back.kind.class_name() {
                let (there, back) = (link.kind.class_name(), back.kind.class_name());
                warnings.push(TopologyWarning::SwitchKindsDiffer { from, to, there, back });
            }
        }
        warnings
    }
}
