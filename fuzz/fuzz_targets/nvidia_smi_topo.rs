//! Any text, read as `nvidia-smi topo -m`.

#![no_main]

use hopwise_topology::Format;

#[path = "../source.rs"]
mod source;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::read(bytes, Some(Format::NvidiaSmiTopo)));
