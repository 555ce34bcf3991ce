//! Every recorded output of the corpus gives the facts of its line in the index.
//!
//! The facts are transcribed by hand into the tables of the modules below. The corpus lies beside
//! the project and is no part of it; without it the tests say so and pass.

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use hopwise_topology::{Reading, SourceError, read_bytes};

mod corpus {
    pub(super) mod facts;

    pub(super) mod amd;
    pub(super) mod hwloc;
    pub(super) mod intel;
    pub(super) mod kfd;
    pub(super) mod lspci;
    pub(super) mod msccl;
    pub(super) mod nccl;
    pub(super) mod nvidia_nvlink;
    pub(super) mod nvidia_peer;
    pub(super) mod nvidia_topo;
}

/// What reading a file gave.
pub(crate) type Outcome = Result<Vec<Reading>, SourceError>;

/// A file of the corpus by its path in the index, and what must hold of it.
pub(crate) type Case = (&'static str, fn(&Outcome));

const TABLES: [&[Case]; 10] = [
    corpus::amd::CASES,
    corpus::hwloc::CASES,
    corpus::intel::CASES,
    corpus::kfd::CASES,
    corpus::lspci::CASES,
    corpus::msccl::CASES,
    corpus::nccl::CASES,
    corpus::nvidia_nvlink::CASES,
    corpus::nvidia_peer::CASES,
    corpus::nvidia_topo::CASES,
];

fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus");
    if folder.join("INDEX.tsv").is_file() {
        return Some(folder);
    }
    println!("skipped: there is no corpus at {}", folder.display());
    None
}

fn read(path: &std::path::Path) -> Outcome {
    read_bytes(&fs::read(path).unwrap(), None)
}

fn check(tables: &[&[Case]]) {
    let Some(folder) = folder() else { return };
    for (path, holds) in tables.iter().copied().flatten() {
        println!("{path}"); // the last one before a failure
        holds(&read(&folder.join(path)));
    }
}

#[test]
fn every_line_of_the_index_has_its_facts_in_a_table() {
    let Some(folder) = folder() else { return };
    let index = fs::read_to_string(folder.join("INDEX.tsv")).unwrap();
    let known = |path: &str| TABLES.iter().copied().flatten().any(|(name, _)| *name == path);
    let missing: Vec<&str> = index
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').next())
        .filter(|path| !path.is_empty() && !known(path))
        .collect();
    assert!(missing.is_empty(), "no facts for {missing:#?}");
}

#[test]
fn every_file_gives_its_facts() {
    check(&TABLES);
}
