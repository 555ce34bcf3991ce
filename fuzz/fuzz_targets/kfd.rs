//! Any text, read as AMD's kernel driver's topology, printed by `grep -r`.

#![no_main]

use hopwise_topology::Format;

#[path = "../source.rs"]
mod source;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::read(bytes, Some(Format::Kfd)));
