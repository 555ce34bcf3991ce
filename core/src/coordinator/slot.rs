//! One registration of one device: its state, kernels, reservations and memory under one lock, and
//! a copy of the figures that can be read without it.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard, RwLock};

use super::kernel_list::KernelList;
use super::memory::{MemoryLedger, Promise};
use super::{DeviceState, DeviceStatus, Incarnation, RefusalReason};
use crate::device_info::DeviceInfo;
use crate::id::KernelId;

/// Bits of a count in the packed word.
const COUNT_BITS: u32 = 28;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
/// Stands for the state of a device that left and is empty.
const RETIRED: u64 = 0xff;

/// Most kernels and reservations of one device, whatever the configuration says.
pub(super) const MOST_KERNELS: usize = (1 << COUNT_BITS) - 1;

/// One registration of one device.
#[derive(Debug)]
pub(super) struct DeviceSlot {
    pub(super) index: usize,
    pub(super) incarnation: Incarnation,
    pub(super) capacity: usize,
    /// The facts as registered. Their memory figure is not kept up to date.
    pub(super) facts: DeviceInfo,
    /// The facts with the last memory report.
    info: RwLock<Arc<DeviceInfo>>,
    inner: Mutex<Inner>,
    /// State, kernel count and reservations, packed so that they are read together.
    word: AtomicU64,
    available_bytes: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Inner {
    state: DeviceState,
    /// The device left and its last kernel is gone: nothing is ever put on it again.
    is_retired: bool,
    kernels: KernelList,
    /// By number of the request. A reservation that is not in here has ended.
    reservations: HashMap<u64, Reservation>,
    memory: MemoryLedger,
}

/// Room held for a migration in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    pub(super) kernel: KernelId,
    pub(super) promise: Promise,
}

/// The figures of a device at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotView {
    pub(super) state: DeviceState,
    pub(super) kernels: usize,
    pub(super) reserved: usize,
    pub(super) available_bytes: u64,
}

impl From<&DeviceStatus> for SlotView {
    fn from(status: &DeviceStatus) -> Self {
        Self {
            state: status.state,
            kernels: status.kernel_count,
            reserved: status.reserved,
            available_bytes: status.available_memory_bytes,
        }
    }
}

impl DeviceSlot {
    pub(super) fn new(info: DeviceInfo, incarnation: Incarnation, capacity: usize) -> Self {
        let inner = Inner {
            state: DeviceState::Active,
            is_retired: false,
            kernels: KernelList::new(),
            reservations: HashMap::new(),
            memory: MemoryLedger::new(info.total_memory_bytes, info.available_memory_bytes),
        };
        Self {
            index: info.index,
            incarnation,
            capacity: capacity.min(MOST_KERNELS),
            word: AtomicU64::new(inner.packed()),
            available_bytes: AtomicU64::new(inner.memory.available_bytes()),
            inner: Mutex::new(inner),
            info: RwLock::new(Arc::new(info.clone())),
            facts: info,
        }
    }

    /// The present figures, without waiting; `None` once the device left and is empty.
    pub(super) fn view(&self) -> Option<SlotView> {
        let word = self.word.load(Ordering::Acquire);
        Some(SlotView {
            state: state_of(word >> (2 * COUNT_BITS))?,
            kernels: count_of(word >> COUNT_BITS),
            reserved: count_of(word),
            available_bytes: self.available_bytes.load(Ordering::Acquire),
        })
    }

    pub(super) fn is_retired(&self) -> bool {
        self.word.load(Ordering::Acquire) >> (2 * COUNT_BITS) == RETIRED
    }

    /// The facts with the last memory report.
    pub(super) fn info(&self) -> Arc<DeviceInfo> {
        Arc::clone(&self.info.read())
    }

    pub(super) fn status(&self) -> Option<DeviceStatus> {
        self.view().map(|view| DeviceStatus {
            info: self.info(),
            incarnation: self.incarnation,
            state: view.state,
            kernel_count: view.kernels,
            reserved: view.reserved,
            capacity: self.capacity,
            available_memory_bytes: view.available_bytes,
        })
    }

    pub(super) fn lock(&self) -> SlotGuard<'_> {
        SlotGuard { slot: self, inner: self.inner.lock() }
    }

    /// Locks two devices, in order of incarnation so that two threads cannot wait for each other.
    /// The caller makes sure that they differ.
    pub(super) fn lock_pair<'a>(
        first: &'a Self,
        second: &'a Self,
    ) -> (SlotGuard<'a>, SlotGuard<'a>) {
        debug_assert_ne!(first.incarnation, second.incarnation, "a lock is never taken twice");
        if first.incarnation < second.incarnation {
            let guard = first.lock();
            (guard, second.lock())
        } else {
            let guard = second.lock();
            (first.lock(), guard)
        }
    }
}

/// The locked part of a device. What has changed shows to readers when the guard is dropped.
pub(super) struct SlotGuard<'a> {
    slot: &'a DeviceSlot,
    inner: MutexGuard<'a, Inner>,
}

impl SlotGuard<'_> {
    /// Why the device cannot take a kernel that names it and wants `bytes`, if it cannot.
    pub(super) fn obstacle(&self, bytes: u64) -> Option<RefusalReason> {
        if !self.state.accepts_kernels() {
            return Some(RefusalReason::State(self.state));
        }
        let (kernels, reserved) = (self.kernels.len(), self.reservations.len());
        if kernels + reserved >= self.slot.capacity {
            let capacity = self.slot.capacity;
            return Some(RefusalReason::Full { kernels, reserved, capacity });
        }
        let available_bytes = self.memory.available_bytes();
        (bytes > available_bytes)
            .then_some(RefusalReason::Memory { required_bytes: bytes, available_bytes })
    }

    /// Records a new memory report.
    pub(super) fn report_memory(&mut self, available_bytes: u64) {
        self.memory.report(available_bytes);
        let mut info = DeviceInfo::clone(&self.slot.facts);
        info.available_memory_bytes = available_bytes;
        *self.slot.info.write() = Arc::new(info);
    }
}

impl Deref for SlotGuard<'_> {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.inner
    }
}

impl DerefMut for SlotGuard<'_> {
    fn deref_mut(&mut self) -> &mut Inner {
        &mut self.inner
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        // Still locked, so copies follow one another in the order of the changes.
        let available_bytes = self.inner.memory.available_bytes();
        self.slot.available_bytes.store(available_bytes, Ordering::Release);
        self.slot.word.store(self.inner.packed(), Ordering::Release);
    }
}

impl Inner {
    pub(super) fn state(&self) -> DeviceState {
        self.state
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired
    }

    pub(super) fn kernels(&self) -> Vec<KernelId> {
        self.kernels.to_vec()
    }

    /// Changes the state. Where it no longer accepts kernels, every reservation ends; those are
    /// returned, with the numbers of their requests.
    pub(super) fn set_state(&mut self, state: DeviceState) -> Vec<(u64, Reservation)> {
        self.state = state;
        self.retire_if_empty();
        if state.accepts_kernels() {
            return Vec::new();
        }
        let ended: Vec<_> = self.reservations.drain().collect();
        for (_, reservation) in &ended {
            self.memory.give_back(reservation.promise);
        }
        ended
    }

    fn retire_if_empty(&mut self) {
        self.is_retired = self.state == DeviceState::Leaving && self.kernels.is_empty();
    }

    /// Adds a kernel with a promise of memory. The caller has looked for obstacles.
    pub(super) fn add(&mut self, kernel: KernelId, bytes: u64) -> (u32, Promise) {
        (self.kernels.push(kernel), self.memory.promise(bytes))
    }

    /// Removes a kernel; returns whether the device is retired by that.
    pub(super) fn remove(&mut self, kernel: &KernelId, position: u32, promise: Promise) -> bool {
        self.kernels.remove(position, kernel);
        self.memory.give_back(promise);
        self.retire_if_empty();
        self.is_retired
    }

    pub(super) fn holds(&self, request: u64) -> bool {
        self.reservations.contains_key(&request)
    }

    /// Reserves room. The caller has looked for obstacles.
    pub(super) fn reserve(&mut self, request: u64, kernel: KernelId, bytes: u64) {
        let promise = self.memory.promise(bytes);
        self.reservations.insert(request, Reservation { kernel, promise });
    }

    /// Ends a reservation; returns whether it was held.
    pub(super) fn release(&mut self, request: u64) -> bool {
        match self.reservations.remove(&request) {
            Some(reservation) => {
                self.memory.give_back(reservation.promise);
                true
            }
            None => false,
        }
    }

    /// Turns a reservation into the kernel it was held for; `None` if it has ended.
    pub(super) fn admit_reserved(&mut self, request: u64) -> Option<(u32, Promise)> {
        let reservation = self.reservations.remove(&request)?;
        Some((self.kernels.push(reservation.kernel), reservation.promise))
    }

    /// Gives a reservation a new number, which ends the old one; returns whether it was held.
    pub(super) fn renumber(&mut self, old: u64, new: u64) -> bool {
        match self.reservations.remove(&old) {
            Some(reservation) => {
                self.reservations.insert(new, reservation);
                true
            }
            None => false,
        }
    }

    fn packed(&self) -> u64 {
        let state = if self.is_retired { RETIRED } else { code_of(self.state) };
        let count = |length: usize| length as u64 & COUNT_MASK;
        state << (2 * COUNT_BITS)
            | count(self.kernels.len()) << COUNT_BITS
            | count(self.reservations.len())
    }
}

fn count_of(word: u64) -> usize {
    usize::try_from(word & COUNT_MASK).expect("28 bits fit")
}

const fn code_of(state: DeviceState) -> u64 {
    match state {
        DeviceState::Active => 0,
        DeviceState::Degraded => 1,
        DeviceState::Leaving => 2,
        DeviceState::Unresponsive => 3,
        DeviceState::Lost => 4,
        DeviceState::Probation => 5,
    }
}

const fn state_of(code: u64) -> Option<DeviceState> {
    Some(match code {
        0 => DeviceState::Active,
        1 => DeviceState::Degraded,
        2 => DeviceState::Leaving,
        3 => DeviceState::Unresponsive,
        4 => DeviceState::Lost,
        5 => DeviceState::Probation,
        _ => return None,
    })
}
