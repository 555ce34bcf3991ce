//! What `--drain` and `--inject` mean.

use std::str::FromStr;

use hopwise_core::fleet::{MessageFault, MessageFaultKind};

#[cfg(test)]
mod tests;

/// `D@ITERATION`: which device is drained or lost, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    /// The device.
    pub(crate) device: usize,
    /// The iteration that every kernel has finished then.
    pub(crate) iteration: u32,
}

impl FromStr for Drain {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('@').and_then(|(device, iteration)| {
            Some(Self { device: device.parse().ok()?, iteration: iteration.parse().ok()? })
        });
        parsed.ok_or_else(|| "write DEVICE@ITERATION with two whole numbers, as in 0@40".to_owned())
    }
}

/// `FAULT@N`: what is done to which message between kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Injection {
    /// As the fleet takes it.
    pub(crate) fault: MessageFault,
}

impl FromStr for Injection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind_of = |name| match name {
            "lose" => Some(MessageFaultKind::Lose),
            "duplicate" => Some(MessageFaultKind::Duplicate),
            "reorder" => Some(MessageFaultKind::Reorder),
            _ => None,
        };
        let parsed = text.split_once('@').and_then(|(kind, nth)| {
            let nth = nth.parse().ok().filter(|nth| *nth > 0)?;
            Some(Self { fault: MessageFault { kind: kind_of(kind)?, nth } })
        });
        parsed.ok_or_else(|| {
            "write lose@N, duplicate@N or reorder@N with N from 1, as in lose@200".to_owned()
        })
    }
}
