//! Profiles: the GPUs and NICs of a machine, and what transfers cost.

use serde_json::Value;

use super::machines::{MOST_GPUS, Machines, square};
use super::{Document, SOURCE, count, refusal};
use crate::{Figure, Node, NodeKind, Observations, Pair, SourceError, Statement, Tool};

pub(super) fn read(document: &Document) -> Result<Observations, SourceError> {
    let Some(gpus) = count(&document.gpus_per_node, MOST_GPUS) else {
        return Err(refusal(format!(
            "gpus_per_node is no number from 1 to {MOST_GPUS}; state the GPUs of one machine"
        )));
    };
    let mut machines = Machines::new(1, gpus)?;
    let is_of_a_megabyte = is_of_a_megabyte(document);
    if !is_of_a_megabyte {
        machines.observed.warn(
            None,
            "the costs are not for messages of 1 MB, and such profiles are scaled at will: they \
             are left out",
        );
    }
    let costs = Costs {
        document,
        gpus,
        betas: square(&document.betas, gpus).unwrap_or_default(),
        invbws: square(&document.invbws, gpus).unwrap_or_default(),
        are_known: is_of_a_megabyte,
    };
    if document.links.is_null() {
        add_pairs(&costs, &mut machines.observed);
    } else {
        machines.add_links(&document.links, |to, from| {
            (costs.bandwidth(to, from), costs.latency(&document.alpha))
        });
    }
    add_nics(&costs, &mut machines.observed);
    Ok(machines.observed)
}

/// The name tells for what size of messages the costs are. Where it does not, they are for a
/// megabyte, as TACCL's guide defines them.
fn is_of_a_megabyte(document: &Document) -> bool {
    let name = document.name.as_str().unwrap_or("").to_ascii_uppercase();
    let sizes = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| {
        let digits = ["KB", "MB", "GB"].iter().find_map(|unit| word.strip_suffix(unit));
        digits.is_some_and(|digits| {
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    sizes.into_iter().all(|size| size == "1MB")
}

/// What the profile says about costs.
struct Costs<'a> {
    document: &'a Document,
    gpus: usize,
    /// By destination and source; empty if there is no such matrix.
    betas: Vec<&'a Vec<Value>>,
    invbws: Vec<&'a Vec<Value>>,
    are_known: bool,
}

impl Costs<'_> {
    /// GB/s by microseconds for a megabyte.
    fn gb_per_s(&self, beta: Option<f64>) -> Figure {
        let beta = beta.filter(|&beta| self.are_known && beta > 0.0);
        beta.and_then(|beta| Figure::reported(1000.0 / beta, SOURCE).ok()).unwrap_or_default()
    }

    fn latency(&self, alpha: &Value) -> Figure {
        let alpha = alpha.as_f64().filter(|_| self.are_known);
        alpha.and_then(|alpha| Figure::reported(alpha, SOURCE).ok()).unwrap_or_default()
    }

    /// Of a pair, by the matrices.
    fn bandwidth(&self, to: usize, from: usize) -> Figure {
        let at = |matrix: &[&Vec<Value>]| matrix.get(to)?.get(from)?.as_f64();
        self.gb_per_s(self.beta(at(&self.betas), at(&self.invbws)))
    }

    /// `invbw` is what a whole transfer of a megabyte takes: alpha and beta together.
    fn beta(&self, beta: Option<f64>, invbw: Option<f64>) -> Option<f64> {
        let alpha = self.document.alpha.as_f64();
        beta.or_else(|| Some(invbw? - alpha?))
    }
}

/// One cost for all pairs. Several are of pairs that the program that reads the profile knows.
fn add_pairs(costs: &Costs<'_>, observed: &mut Observations) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let betas = list(&costs.document.node_betas_list);
    let invbws = list(&costs.document.node_invbws_list);
    if betas.len().max(invbws.len()) > 1 {
        let text = "several costs of links, but not of which; they are left out";
        observed.warn(None, text);
        return;
    }
    let only = |list: &[Value]| list.first().and_then(Value::as_f64);
    let bandwidth = costs.gb_per_s(costs.beta(only(&betas), only(&invbws)));
    if bandwidth.is_unknown() {
        return;
    }
    for from in 0..costs.gpus {
        for to in (0..costs.gpus).filter(|&to| to != from) {
            let statement = Statement::Bandwidth(bandwidth.clone());
            observed.pairs.push(Pair { from, to, statement, line: None });
        }
    }
}

fn add_nics(costs: &Costs<'_>, observed: &mut Observations) {
    let stated = &costs.document.nics_per_node;
    let Some(nics) = count(stated, MOST_GPUS) else {
        // TACCL itself writes -1 where there is none.
        if !stated.is_null() && !matches!(stated.as_i64(), Some(-1 | 0)) {
            let text = format!("nics_per_node is no number from 1 to {MOST_GPUS}; it is left out");
            observed.warn(None, text);
        }
        return;
    };
    let speed = costs.gb_per_s(costs.document.remote_beta.as_f64());
    for number in 0..nics {
        let mut nic = Node::new(NodeKind::Nic).labelled(Tool::Profile, format!("NIC{number}"));
        nic.network_gb_per_s = speed.clone();
        observed.add_node(nic);
    }
}
