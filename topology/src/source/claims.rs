//! What a text says about pairs of nodes, checked against itself.
//!
//! A text that says two things about one pair is damaged, and nobody knows where: then it says
//! nothing about the pair.

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::{InterconnectType, Observations, Pair, PeerCapability, Statement};

#[cfg(test)]
mod tests;

/// Statements, each at most once for an ordered pair and a subject.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_pair: BTreeMap<(usize, usize, Subject), Claim>,
}

/// What a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Class,
    Weight,
    Hops,
    Bandwidth,
    Latency,
    Peer(PeerCapability),
}

#[derive(Debug)]
struct Claim {
    statement: Statement,
    line: Option<usize>,
    contradiction: Option<Contradiction>,
}

/// Another claim that differs.
#[derive(Debug)]
struct Contradiction {
    statement: Statement,
    line: Option<usize>,
    /// Whether it is about the way back.
    is_back: bool,
}

impl Claims {
    /// Takes a statement about the way from one node to another; their positions differ.
    pub(super) fn add(
        &mut self,
        from: usize,
        to: usize,
        statement: Statement,
        line: impl Into<Option<usize>>,
    ) {
        let line = line.into();
        let key = (from, to, subject(&statement));
        match self.by_pair.get_mut(&key) {
            None => {
                let claim = Claim { statement, line, contradiction: None };
                self.by_pair.insert(key, claim);
            }
            Some(claim) if claim.statement != statement => {
                let other = Contradiction { statement, line, is_back: false };
                claim.contradiction.get_or_insert(other);
            }
            Some(_) => {}
        }
    }

    /// Puts the statements that nothing contradicts into the observations, and warns of the rest.
    pub(super) fn finish(mut self, observations: &mut Observations) {
        self.compare_directions();
        for ((from, to, _), claim) in self.by_pair {
            let Claim { statement, line, contradiction } = claim;
            let Some(other) = contradiction else {
                observations.pairs.push(Pair { from, to, statement, line });
                continue;
            };
            if other.is_back && from > to {
                continue; // said of the way there
            }
            let place = other.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            let text = format!(
                "from {} to {} stands {}, but {} {}{place}; neither is taken",
                name(observations, from),
                name(observations, to),
                shown(&statement),
                if other.is_back { "back" } else { "also" },
                shown(&other.statement),
            );
            observations.warn(line, text);
        }
    }

    /// A kind of link, its weight and its hops are the same in both directions; where they are
    /// not, neither stands. Access and bandwidth may differ.
    fn compare_directions(&mut self) {
        let mut contradictions = Vec::new();
        for (&(from, to, subject), claim) in &self.by_pair {
            let is_mutual = matches!(subject, Subject::Class | Subject::Weight | Subject::Hops);
            let Some(back) = self.by_pair.get(&(to, from, subject)).filter(|_| is_mutual) else {
                continue;
            };
            let is_open = |claim: &Claim| {
                claim.statement == Statement::Class(InterconnectType::Unknown)
                    || claim.contradiction.is_some()
            };
            if claim.statement != back.statement && !is_open(claim) && !is_open(back) {
                let statement = back.statement.clone();
                let back = Contradiction { statement, line: back.line, is_back: true };
                contradictions.push(((from, to, subject), back));
            }
        }
        for (key, back) in contradictions {
            if let Some(claim) = self.by_pair.get_mut(&key) {
                claim.contradiction = Some(back);
            }
        }
    }
}

fn subject(statement: &Statement) -> Subject {
    match statement {
        Statement::Class(_) => Subject::Class,
        Statement::Weight(_) => Subject::Weight,
        Statement::Hops(_) => Subject::Hops,
        Statement::Bandwidth(_) => Subject::Bandwidth,
        Statement::Latency(_) => Subject::Latency,
        Statement::Peer { capability, .. } => Subject::Peer(*capability),
    }
}

fn shown(statement: &Statement) -> String {
    match statement {
        Statement::Class(kind) => kind.class_name(),
        Statement::Weight(weight) => format!("weight {weight}"),
        Statement::Hops(hops) => format!("{hops} hops"),
        Statement::Bandwidth(figure) => format!("{figure} GB/s"),
        Statement::Latency(figure) => format!("{figure} us"),
        Statement::Peer { capability, status } => format!("{capability:?} {status:?}"),
    }
}

/// What a person calls a node.
fn name(observations: &Observations, position: usize) -> String {
    let Some(node) = observations.nodes.get(position) else { return format!("node {position}") };
    let label = node.labels.first().map(|label| &label.name as &dyn Display);
    let pci = node.pci.as_ref().map(|pci| pci as &dyn Display);
    label.or(pci).map_or_else(|| format!("node {position}"), ToString::to_string)
}
