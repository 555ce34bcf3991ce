//! What can be wrong with a topology, and what to do about it.

use crate::{InterconnectType, SwitchId};

/// An operation on a topology was refused; the topology is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The operation names a device that the topology does not have.
    #[error("device {index} is not in the topology; add it first, or correct the index")]
    UnknownDevice {
        /// The index that was asked for.
        index: usize,
    },

    /// The device that was to be added is there already.
    #[error("device {index} is already in the topology; remove it first, or use another index")]
    DeviceExists {
        /// The index that is in use.
        index: usize,
    },

    /// The operation names a switch that the topology does not have.
    #[error("{switch} is not in the topology; add it first, or correct its number")]
    UnknownSwitch {
        /// The switch that was asked for.
        switch: SwitchId,
    },

    /// A link that was given as a switch's joins two devices.
    #[error(
        "the link from device {from} to device {to} has no switch at either end; \
         set it as a connection"
    )]
    NoSwitch {
        /// The device where it starts.
        from: usize,
        /// The device where it ends.
        to: usize,
    },

    /// A link leads from a switch to itself.
    #[error("the link from {switch} leads to itself; name two different ends")]
    SwitchLoop {
        /// The switch named at both ends.
        switch: SwitchId,
    },

    /// A link leads from a device to itself.
    #[error("the link from device {index} leads to itself; name two different devices")]
    SelfLink {
        /// The device named at both ends.
        index: usize,
    },

    /// A bandwidth or latency is zero, negative, infinite or not a number.
    #[error(
        "the figure {value} is not a positive finite number; \
         give one, or leave the figure out if it is not known"
    )]
    InvalidFigure {
        /// The refused value.
        value: f64,
    },

    /// The kind of a link says that it is made of no links, or of PCIe with no lanes.
    #[error(
        "a link of kind {kind:?} has zero links or lanes; give their number, or leave the link out"
    )]
    EmptyLink {
        /// The kind as it was given.
        kind: InterconnectType,
    },

    /// A JSON document is not a topology.
    #[error("line {line}, column {column}: {reason}")]
    Json {
        /// Line in the document, from 1.
        line: usize,
        /// Column in that line, in bytes from 1.
        column: usize,
        /// What is wrong, and the remedy.
        reason: String,
    },
}
