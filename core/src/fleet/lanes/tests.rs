//! The lanes against one plain list.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Lanes, Parcel};
use crate::message::{Message, Priority};

const PRIORITIES: [Priority; 4] =
    [Priority::Low, Priority::Normal, Priority::High, Priority::Urgent];

/// What a model remembers of a parcel.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    priority: Priority,
    sequence: u64,
    is_expired: bool,
}

fn entry(parcel: &Parcel) -> Entry {
    let is_expired = parcel.message.is_expired(Instant::now());
    Entry { priority: parcel.message.priority, sequence: parcel.sequence, is_expired }
}

fn parcel(entry: &Entry, has_deadline: bool) -> Parcel {
    let now = Instant::now();
    let message = Message::new(0, vec![]).with_priority(entry.priority);
    let message = match (entry.is_expired, has_deadline) {
        (true, _) => message.with_deadline(now.checked_sub(Duration::from_secs(1)).unwrap_or(now)),
        (false, true) => message.with_deadline(now + Duration::from_secs(3600)),
        (false, false) => message,
    };
    Parcel { sequence: entry.sequence, source: 0, message }
}

#[derive(Clone, Debug)]
enum Action {
    Push { priority: usize, is_expired: bool, has_deadline: bool },
    PushAll { priority: usize, has_deadline: bool, count: usize, left: usize },
    Take(usize),
    TakeOne,
    PutBack,
    Expire,
    Drain,
}

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let push = (0usize..4, any::<bool>(), any::<bool>()).prop_map(
        |(priority, is_expired, has_deadline)| Action::Push { priority, is_expired, has_deadline },
    );
    let push_all = (0usize..4, any::<bool>(), 0usize..4, 0usize..3).prop_map(
        |(priority, has_deadline, count, left)| Action::PushAll {
            priority,
            has_deadline,
            count,
            left,
        },
    );
    let action = prop_oneof![
        6 => push,
        2 => push_all,
        2 => (0usize..5).prop_map(Action::Take),
        1 => Just(Action::TakeOne),
        1 => Just(Action::PutBack),
        1 => Just(Action::Expire),
        1 => Just(Action::Drain),
    ];
    prop::collection::vec(action, 0..60)
}

/// Takes as the lanes should: the most urgent first, in order, passing over what has expired.
fn model_take(model: &mut Vec<Entry>, most: usize) -> (Vec<Entry>, Vec<Entry>) {
    let (mut taken, mut expired) = (Vec::new(), Vec::new());
    for priority in PRIORITIES.into_iter().rev() {
        while taken.len() < most
            && let Some(at) = model.iter().position(|entry| entry.priority == priority)
        {
            let entry = model.remove(at);
            if entry.is_expired { expired.push(entry) } else { taken.push(entry) }
        }
    }
    (taken, expired)
}

proptest! {
    #[test]
    fn parcels_come_out_by_priority_and_in_order(actions in actions()) {
        let mut lanes = Lanes::default();
        let mut model: Vec<Entry> = Vec::new();
        let mut last: VecDeque<Parcel> = VecDeque::new();
        let mut batch: VecDeque<Parcel> = VecDeque::new();
        for (sequence, action) in (1..).zip(actions) {
            let mut expired = Vec::new();
            match action {
                Action::Push { priority, is_expired, has_deadline } => {
                    let new = Entry { priority: PRIORITIES[priority], sequence, is_expired };
                    lanes.push_back(parcel(&new, has_deadline));
                    model.push(new);
                }
                Action::PushAll { priority, has_deadline, count, left } => {
                    let priority = PRIORITIES[priority];
                    let entry = |number| Entry {
                        priority,
                        sequence: sequence * 100 + number as u64,
                        is_expired: false,
                    };
                    batch.clear();
                    batch.extend((0..count + left).map(entry).map(|new| parcel(&new, has_deadline)));
                    lanes.push_all(priority, &mut batch, count);
                    model.extend((0..count).map(entry));
                    let stays: Vec<_> = batch.iter().map(|parcel| parcel.sequence).collect();
                    let all = (count..count + left).map(|number| entry(number).sequence);
                    prop_assert_eq!(stays, all.collect::<Vec<_>>());
                }
                Action::Take(most) => {
                    last.clear();
                    lanes.take(most, &mut last, &mut expired);
                    let (taken, gone) = model_take(&mut model, most);
                    prop_assert_eq!(last.iter().map(entry).collect::<Vec<_>>(), taken);
                    prop_assert_eq!(expired.iter().map(entry).collect::<Vec<_>>(), gone);
                }
                Action::TakeOne => {
                    last = lanes.take_one(&mut expired).into_iter().collect();
                    let (taken, gone) = model_take(&mut model, 1);
                    prop_assert_eq!(last.iter().map(entry).collect::<Vec<_>>(), taken);
                    prop_assert_eq!(expired.iter().map(entry).collect::<Vec<_>>(), gone);
                }
                Action::PutBack => {
                    for parcel in std::mem::take(&mut last).into_iter().rev() {
                        model.insert(0, entry(&parcel));
                        lanes.push_front(parcel);
                    }
                }
                Action::Expire => {
                    lanes.expire(&mut expired);
                    let gone = model.iter().filter(|entry| entry.is_expired).count();
                    prop_assert_eq!(expired.len(), gone);
                    model.retain(|entry| !entry.is_expired);
                }
                Action::Drain => {
                    let drained: Vec<_> = lanes.drain().iter().map(entry).collect();
                    model.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
                    prop_assert_eq!(&drained, &model);
                    model.clear();
                }
            }
            prop_assert_eq!(lanes.len(), model.len());
        }
    }
}
