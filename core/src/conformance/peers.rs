//! Copies between devices, where a backend offers them.

use std::sync::{Arc, Barrier};
use std::thread;

use proptest::prelude::*;

use super::programs;
use super::subject::{Kernel, Subject, property};
use crate::device::Device;
use crate::error::TransferError;

pub(super) fn peer_copies_are_exact(subject: &Subject) {
    let range = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    for other in reached(subject) {
        let peer = subject.device.peer_copy().expect("the device offered copies");
        let states = prop::collection::vec((any::<u32>(), any::<u32>()), 3..200);
        property(16, (states, range.clone()), |(states, (from, to))| {
            let (from, to) = (from.index(states.len() + 1), to.index(states.len() + 1));
            let range = from.min(to)..from.max(to);
            let (source, mut target): (Vec<_>, Vec<_>) = states.into_iter().unzip();
            let here = subject.kernel(&programs::fold(), &source);
            let there = Kernel::new(&*other, &programs::fold(), &[], &target);
            let (offset, length) = (range.start as u64 * 4, range.len() as u64 * 4);
            let copied = peer.copy_state(&*here.instance, &*there.instance, offset, length);
            prop_assert_eq!(copied, Ok(()));
            target[range.clone()].copy_from_slice(&source[range]);
            prop_assert_eq!(there.state(), target);
            prop_assert_eq!(here.state(), source);
            Ok(())
        });
        let here = subject.kernel(&programs::fold(), &[0; 4]);
        let there = Kernel::new(&*other, &programs::fold(), &[], &[0; 4]);
        let copy =
            |offset, length| peer.copy_state(&*here.instance, &*there.instance, offset, length);
        assert!(matches!(copy(2, 4), Err(TransferError::Misaligned { .. })));
        assert!(matches!(copy(8, 12), Err(TransferError::OutOfRange { .. })));
    }
}

pub(super) fn opposite_peer_copies_end(subject: &Subject) {
    const WORDS: usize = 64;
    const COPIES: usize = 2000;
    for other in reached(subject) {
        let peer = subject.device.peer_copy().expect("the device offered copies");
        let here = subject.kernel(&programs::fold(), &[5; WORDS]);
        let there = Kernel::new(&*other, &programs::fold(), &[], &[5; WORDS]);
        let (here, there) = (&*here.instance, &*there.instance);
        let start = Barrier::new(2);
        thread::scope(|scope| {
            for (from, to) in [(here, there), (there, here)] {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..COPIES {
                        peer.copy_state(from, to, 0, WORDS as u64 * 4).expect("both devices work");
                    }
                });
            }
        });
    }
}

/// The other devices of the backend that the device reaches, itself opened anew among them.
fn reached(subject: &Subject) -> Vec<Arc<dyn Device>> {
    let Some(peer) = subject.device.peer_copy() else {
        eprintln!("copies between devices are not offered");
        return Vec::new();
    };
    let listed = subject.backend.enumerate().expect("the devices were listed before");
    let opened = listed.iter().map(|info| subject.backend.open(info.index));
    let mut reached: Vec<_> =
        opened.map(|device| device.expect("a listed device can be opened")).collect();
    reached.retain(|other| peer.reaches(&**other));
    reached
}
