//! Any file tree, read as sysfs and AMD's kernel driver's topology.

#![no_main]

#[path = "../source.rs"]
mod source;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::read_tree(bytes));
