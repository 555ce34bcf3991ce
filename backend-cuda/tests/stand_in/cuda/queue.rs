//! What a stream does, on a thread of its own, in order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::module::Function;
use crate::state;

/// Between what a copy copies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Up,
    Down,
    Inside,
    Across,
}

/// Something that a stream does.
#[derive(Clone)]
pub enum Op {
    Copy { way: Way, to: u64, from: u64, bytes: usize },
    /// Lasts as long as the copies of its device hang.
    Stall,
    Fill { at: u64, byte: u8, bytes: usize },
    Launch {
        function: Arc<Function>,
        grid: [u32; 3],
        block: [u32; 3],
        argument: u64,
        together: bool,
    },
    Record { event: Arc<Event>, number: u64 },
    Wait { event: Arc<Event>, number: u64 },
}

impl Op {
    /// Which form of node it is in a graph.
    pub fn form(&self) -> (u8, usize) {
        match self {
            // A driver does not turn a copy into one between other kinds of memory.
            Self::Copy { way, .. } => (0, *way as usize),
            Self::Stall => (0, Way::Across as usize),
            Self::Fill { .. } => (1, 0),
            Self::Launch { function, .. } => (2, Arc::as_ptr(function).addr()),
            Self::Record { .. } => (3, 0),
            Self::Wait { .. } => (4, 0),
        }
    }

    fn run(self, device: usize) {
        match self {
            Self::Copy { to, from, bytes, .. } => unsafe {
                std::ptr::copy(from as *const u8, to as *mut u8, bytes);
            },
            Self::Stall => {
                while state::lock().devices[device].copies_hang {
                    thread::sleep(Duration::from_millis(2));
                }
            }
            Self::Fill { at, byte, bytes } => unsafe { (at as *mut u8).write_bytes(byte, bytes) },
            Self::Launch { function, grid, block, argument, together } => {
                while state::lock().devices[device].hangs {
                    thread::sleep(Duration::from_millis(2));
                }
                function.run(argument, grid, block, together);
            }
            Self::Record { event, number } => {
                // Two streams may pass records of one event in either order.
                let mut done = event.done.lock().expect("no panic under it");
                *done = number.max(*done);
                event.passed.notify_all();
            }
            Self::Wait { event, number } => event.wait(number),
        }
    }
}

#[derive(Default)]
pub struct Event {
    pub recorded: AtomicU64,
    /// Whether the last record of it is in a capture, and so no place in a stream.
    pub is_captured: AtomicBool,
    done: Mutex<u64>,
    passed: Condvar,
}

impl Event {
    pub fn next(&self) -> u64 {
        self.recorded.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn is_done(&self) -> bool {
        *self.done.lock().expect("no panic under it") >= self.recorded.load(Ordering::SeqCst)
    }

    pub fn wait(&self, number: u64) {
        let mut done = self.done.lock().expect("no panic under it");
        while *done < number {
            done = self.passed.wait(done).expect("no panic under it");
        }
    }
}

/// The thread of a stream. It ends when the stream is destroyed and all is done.
pub struct Queue {
    sender: Sender<Op>,
    waiting: Arc<AtomicU64>,
}

impl Queue {
    pub fn new(device: usize) -> Arc<Self> {
        let (sender, receiver): (_, Receiver<Op>) = channel();
        let waiting = Arc::new(AtomicU64::new(0));
        let left = Arc::clone(&waiting);
        thread::spawn(move || {
            // A context that is lost does nothing any more, but its events pass.
            for op in receiver {
                let slow_us = state::lock().devices[device].slow_us;
                if slow_us > 0 {
                    thread::sleep(Duration::from_micros(slow_us));
                }
                let is_lost = {
                    let state = state::lock();
                    let device = state.devices[device];
                    device.lost.or(device.sticky).is_some()
                };
                if !is_lost || matches!(op, Op::Record { .. }) {
                    op.run(device);
                }
                left.fetch_sub(1, Ordering::SeqCst);
            }
        });
        Arc::new(Self { sender, waiting })
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) == 0
    }

    pub fn put(&self, op: Op) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        self.sender.send(op).expect("the thread lives as long as its queue");
    }
}
