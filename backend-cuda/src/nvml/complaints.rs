//! Questions that failed, told once for all GPUs that they failed for.

use std::collections::{BTreeMap, BTreeSet};

use super::management::{Answer, Fault, Status};

/// Subjects that are named in one warning.
const MOST_NAMED: usize = 4;

/// What could not be asked so far.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    subjects: BTreeMap<(&'static str, Status), Vec<String>>,
    lost: BTreeSet<u32>,
}

impl Complaints {
    /// Whether a GPU is known to be lost: nothing more is asked of it.
    pub(super) fn is_lost(&self, gpu: u32) -> bool {
        self.lost.contains(&gpu)
    }

    /// The answer about a GPU. Where it failed, that is noted, and a lost GPU is noted once.
    pub(super) fn take<T>(&mut self, gpu: u32, subject: &str, answer: Answer<T>) -> Option<T> {
        let fault = match answer {
            Ok(value) => return Some(value),
            Err(fault) => fault,
        };
        if !fault.status.is_loss() || self.lost.insert(gpu) {
            self.note(subject, fault);
        }
        None
    }

    /// As [`take`](Self::take), about a pair: which of the two is lost is not said.
    pub(super) fn take_of_pair<T>(&mut self, subject: &str, answer: Answer<T>) -> Option<T> {
        answer.map_err(|fault| self.note(subject, fault)).ok()
    }

    fn note(&mut self, subject: &str, Fault { call, status }: Fault) {
        let subjects = self.subjects.entry((call, status)).or_default();
        if subjects.last().is_none_or(|last| last != subject) {
            subjects.push(subject.to_owned());
        }
    }

    /// As [`take`](Self::take), for what a GPU may well not have: that it has none is no complaint.
    pub(super) fn take_if_any<T>(
        &mut self,
        gpu: u32,
        subject: &str,
        answer: Answer<T>,
    ) -> Option<T> {
        match answer {
            Err(Fault { status: Status::NotSupported | Status::NotFound, .. }) => None,
            other => self.take(gpu, subject, other),
        }
    }

    /// A line for each question and reason, with the remedy.
    pub(super) fn into_texts(self) -> impl Iterator<Item = String> {
        self.subjects.into_iter().map(|((call, status), subjects)| {
            let named = subjects.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>();
            let more = match subjects.len().saturating_sub(MOST_NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let rest = if status.is_loss() { " (the other GPUs are shown)" } else { "" };
            format!("{call} for {}{more}: {status}{rest}; {}", named.join(", "), status.remedy())
        })
    }
}
