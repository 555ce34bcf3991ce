//! Any text, read as `lspci -tv`.

#![no_main]

use hopwise_topology::Format;

#[path = "../source.rs"]
mod source;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::read(bytes, Some(Format::Lspci)));
