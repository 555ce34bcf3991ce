//! What the driver's error numbers (Xid) mean for a device.
//!
//! Source: NVIDIA's "Xid Errors" and its catalogue for Ampere and later. A number that is in no
//! table is taken as a fault that the device has survived, so that it is seen.

use hopwise_core::health::DegradationKind::{self, Fabric, Fault, Memory};

/// What an Xid does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum XidEffect {
    /// The device does nothing more until it is reset or the machine is restarted.
    DeviceLost,
    /// The device works on and should be looked at.
    Degraded(DegradationKind),
    /// A program did wrong, or was ended: the device is as before.
    ProcessOnly,
    /// Worth knowing, and no more.
    Informative,
}

/// An error number of NVIDIA's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Xid(pub u64);

/// Number, what it is, what it does, what to do.
type Entry = (u64, &'static str, XidEffect, &'static str);

use XidEffect::{Degraded, DeviceLost, Informative, ProcessOnly};

const RESET: &str = "end what uses the GPU, then nvidia-smi --gpu-reset";
const RESTART: &str = "restart the machine; if it comes again, have the card replaced";
const PROGRAM: &str = "correct the program; run it with compute-sanitizer";
const DRAIN: &str = "drain the device and reset the GPU; if it comes again, have the card replaced";
const LINK: &str = "look at nvidia-smi nvlink -e, reset the GPUs, check bridges and baseboard";
const NOTHING: &str = "nothing to do";

#[rustfmt::skip]
const TABLE: &[Entry] = &[
    (8, "the GPU stopped processing a channel", ProcessOnly, PROGRAM),
    (11, "invalid or corrupted push buffer", ProcessOnly, PROGRAM),
    (13, "graphics engine exception", ProcessOnly, PROGRAM),
    (31, "memory page fault", ProcessOnly, PROGRAM),
    (32, "invalid or corrupted push buffer", ProcessOnly, PROGRAM),
    (43, "the GPU stopped processing for a program", ProcessOnly, PROGRAM),
    (45, "work was cleaned up after an earlier error or the end of its program", ProcessOnly, NOTHING),
    (46, "the GPU stopped processing", DeviceLost, RESET),
    (48, "memory error that could not be corrected", Degraded(Memory), DRAIN),
    (61, "breakpoint of an internal microcontroller", DeviceLost, RESET),
    (62, "halt of an internal microcontroller", DeviceLost, RESET),
    (63, "a row or page of memory was replaced", Degraded(Memory), "reset the GPU when it is free"),
    (64, "a row or page of memory could not be replaced", Degraded(Memory), DRAIN),
    (68, "exception of the video processor", ProcessOnly, PROGRAM),
    (69, "graphics engine class error", ProcessOnly, PROGRAM),
    (74, "NVLink error", Degraded(Fabric), LINK),
    (79, "the GPU has fallen off the bus", DeviceLost, RESTART),
    (92, "many memory errors that were corrected", Informative, "watch nvidia-smi -q -d ECC"),
    (94, "contained memory error", Degraded(Memory), DRAIN),
    (95, "uncontained memory error", DeviceLost, RESET),
    (109, "a switch between contexts took too long", Degraded(Fault), RESET),
    (110, "security fault", DeviceLost, RESTART),
    (119, "the GPU's system processor does not answer", DeviceLost, RESET),
    (120, "fault of the GPU's system processor", DeviceLost, RESET),
    (121, "error of the link to the processor, corrected", Informative, NOTHING),
    (137, "access over NVLink that is not allowed", ProcessOnly, PROGRAM),
    (140, "memory error that was not recovered", DeviceLost, RESET),
    (143, "the GPU could not be initialised", DeviceLost, RESTART),
    (144, "NVLink error", Degraded(Fabric), LINK),
    (145, "NVLink error", Degraded(Fabric), LINK),
    (146, "NVLink error", Degraded(Fabric), LINK),
    (147, "NVLink error", Degraded(Fabric), LINK),
    (148, "NVLink error", Degraded(Fabric), LINK),
    (149, "NVLink error", Degraded(Fabric), LINK),
    (150, "NVLink error", Degraded(Fabric), LINK),
    (154, "the driver changed what it advises for recovery", Informative, "read the kernel's log"),
];

impl Xid {
    fn entry(self) -> Entry {
        let known = TABLE.iter().find(|(number, ..)| *number == self.0).copied();
        let remedy = "look the number up in NVIDIA's Xid catalogue, and read the kernel's log";
        known.unwrap_or((self.0, "an error that is not in our table", Degraded(Fault), remedy))
    }

    /// What it does.
    #[must_use]
    pub fn effect(self) -> XidEffect {
        self.entry().2
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        self.entry().3
    }
}

/// `Xid 79 (the GPU has fallen off the bus)`
impl std::fmt::Display for Xid {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Xid {} ({})", self.0, self.entry().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_device_is_told_from_a_program_that_did_wrong() {
        let effect = |number| Xid(number).effect();
        assert_eq!(effect(79), DeviceLost);
        assert_eq!(effect(119), DeviceLost);
        assert_eq!([13, 31, 43, 45].map(effect), [ProcessOnly; 4]);
        assert_eq!(effect(48), Degraded(Memory));
        assert_eq!(effect(74), Degraded(Fabric));
        assert_eq!(effect(154), Informative);
        assert_eq!(Xid(79).to_string(), "Xid 79 (the GPU has fallen off the bus)");
    }

    #[test]
    fn an_unknown_number_is_seen_and_takes_nothing_down() {
        assert_eq!(Xid(4711).effect(), Degraded(Fault));
        assert!(Xid(4711).to_string().contains("4711"));
    }

    #[test]
    fn each_number_stands_once_and_in_order() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
