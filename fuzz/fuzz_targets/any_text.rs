//! Any text, read as what it looks like.

#![no_main]

#[path = "../source.rs"]
mod source;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| source::read(bytes, None));
