//! Which calls fail, and how: rules, and a count of all calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::DeviceError;

/// A call that a rule can disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// [`Backend::enumerate`](crate::backend::Backend::enumerate), of no device.
    Enumerate,
    /// [`Backend::links`](crate::backend::Backend::links), of no device.
    Links,
    /// [`Backend::open`](crate::backend::Backend::open).
    Open,
    /// [`Device::memory`](crate::device::Device::memory).
    Memory,
    /// [`Device::compile`](crate::device::Device::compile).
    Compile,
    /// [`Device::create_instance`](crate::device::Device::create_instance).
    CreateInstance,
    /// [`Device::run_batch`](crate::device::Device::run_batch).
    RunBatch,
    /// [`KernelInstance::read_state`](crate::device::KernelInstance::read_state).
    ReadState,
    /// [`KernelInstance::write_state`](crate::device::KernelInstance::write_state).
    WriteState,
    /// [`KernelInstance::chunk_digests`](crate::device::KernelInstance::chunk_digests).
    Digests,
    /// [`PeerCopy::copy_state`](crate::device::PeerCopy::copy_state), of the device that was asked
    /// for the copy.
    PeerCopy,
}

/// What happens to a disturbed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The call is not made and reports this error. A fatal error closes the device's latch.
    Fail(DeviceError),
    /// The call is made, then reports this error; steps of a batch end as unknown. A fatal error
    /// closes the device's latch.
    FailAfter(DeviceError),
    /// The call is made this much later.
    Delay(Duration),
    /// The call is not made, and the device is lost.
    Lose {
        /// What the driver would say.
        cause: String,
    },
    /// The call is made and reports success, but the lowest bit of its first byte is wrong: of what
    /// is read, written, copied, or digested, or of the initial state. Calls without such data are
    /// made as they are.
    Corrupt,
}

/// One rule: which calls, and what happens to them.
///
/// A new rule disturbs the first call of any operation on any device, once.
#[derive(Clone, Debug)]
pub struct FaultRule {
    operation: Option<Operation>,
    ordinal: Option<usize>,
    first_call: u64,
    times: u64,
    action: FaultAction,
}

impl FaultRule {
    /// A rule for the next call of any kind.
    #[must_use]
    pub fn new(action: FaultAction) -> Self {
        Self { operation: None, ordinal: None, first_call: 1, times: 1, action }
    }

    /// Only calls of this operation count.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Only calls to the device that was opened with this ordinal count.
    #[must_use]
    pub fn at_device(mut self, ordinal: usize) -> Self {
        self.ordinal = Some(ordinal);
        self
    }

    /// The `number`-th matching call after arming is disturbed, counted from 1.
    #[must_use]
    pub fn at_call(mut self, number: u64) -> Self {
        self.first_call = number;
        self
    }

    /// So many matching calls in a row are disturbed; [`u64::MAX`] means all that follow.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    fn matches(&self, operation: Operation, ordinal: Option<usize>) -> bool {
        self.operation.is_none_or(|wanted| wanted == operation)
            && self.ordinal.is_none_or(|wanted| ordinal == Some(wanted))
    }

    fn disturbs(&self, call: u64) -> bool {
        call >= self.first_call && call - self.first_call < self.times
    }
}

/// The rules that are armed, and a count of all calls. Shared between a test and its backends.
#[derive(Debug, Default)]
pub struct FaultPlan {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Armed>,
    calls: BTreeMap<(Operation, Option<usize>), u64>,
    fired: u64,
}

#[derive(Debug)]
struct Armed {
    rule: FaultRule,
    seen: u64,
}

impl FaultPlan {
    /// A plan without rules.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Arms a rule: it counts calls from now on. Where several rules disturb one call, the one
    /// armed first does.
    pub fn arm(&self, rule: FaultRule) {
        self.inner.lock().rules.push(Armed { rule, seen: 0 });
    }

    /// Removes all rules. The counts stay.
    pub fn disarm(&self) {
        self.inner.lock().rules.clear();
    }

    /// Sets all counts to zero. The rules, and what they have counted, stay.
    pub fn reset_counts(&self) {
        let mut inner = self.inner.lock();
        inner.calls.clear();
        inner.fired = 0;
    }

    /// Calls so far, disturbed or not, of one operation or all, to one device or all. Calls to the
    /// driver as a whole count for no device. Calls that a closed latch refuses are not counted.
    #[must_use]
    pub fn calls(&self, operation: Option<Operation>, ordinal: Option<usize>) -> u64 {
        let inner = self.inner.lock();
        let counted = inner.calls.iter().filter(|((of, at), _)| {
            operation.is_none_or(|wanted| wanted == *of)
                && ordinal.is_none_or(|wanted| *at == Some(wanted))
        });
        counted.map(|(_, count)| count).sum()
    }

    /// How many calls were disturbed.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.inner.lock().fired
    }

    /// Counts a call and says what happens to it.
    pub(super) fn next(&self, operation: Operation, ordinal: Option<usize>) -> Option<FaultAction> {
        let mut inner = self.inner.lock();
        *inner.calls.entry((operation, ordinal)).or_default() += 1;
        let mut action = None;
        for armed in inner.rules.iter_mut().filter(|armed| armed.rule.matches(operation, ordinal)) {
            armed.seen += 1;
            if action.is_none() && armed.rule.disturbs(armed.seen) {
                action = Some(armed.rule.action.clone());
            }
        }
        inner.fired += u64::from(action.is_some());
        action
    }
}
