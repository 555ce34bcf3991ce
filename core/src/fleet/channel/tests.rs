//! The receiver's ledger: whatever happens to a sequence of numbers on its way is counted.

use proptest::prelude::*;

use super::{Channel, Party};
use crate::id::ChannelId;
use crate::message::Priority;

fn channel() -> Channel {
    let party = Party::Host { name: "test".to_owned() };
    Channel::new(ChannelId::from_raw(1), party.clone(), party, 0)
}

proptest! {
    #[test]
    fn arrivals_are_counted_by_kind(
        numbers in 1u64..60,
        moves in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3), 0..6),
    ) {
        let channel = channel();
        let mut stream: Vec<u64> = {
            let first = channel.next_sequences(Priority::High, numbers);
            (first..first + numbers).collect()
        };
        let (mut lost, mut doubled) = (0, 0);
        for (at, kind) in moves {
            if stream.is_empty() {
                break;
            }
            let at = at.index(stream.len());
            match kind {
                0 => {
                    let number = stream.remove(at);
                    if !stream.contains(&number) { lost += 1 } else { doubled -= 1 }
                }
                1 => {
                    stream.push(stream[at]);
                    doubled += 1;
                }
                _ => {
                    let next = (at + 1) % stream.len();
                    stream.swap(at, next);
                }
            }
        }
        let mut seen = Vec::new();
        let mut late = 0;
        for &number in &stream {
            let first = !seen.contains(&number);
            late += u64::from(first && seen.iter().any(|&earlier| earlier > number));
            prop_assert_eq!(channel.arrived(Priority::High, number), first);
            seen.push(number);
        }
        let ledger = channel.ledger(0);
        prop_assert_eq!(ledger.sent, numbers);
        prop_assert_eq!(ledger.lost, lost);
        prop_assert_eq!(ledger.duplicated, doubled);
        prop_assert_eq!(ledger.out_of_order, late);
    }
}
