//! Encodings, sizes, and paths that cannot be read.

use std::fs;

use super::{MOST_BYTES, decode, read_bytes, read_path};
use crate::GpuTopology;

#[test]
fn every_encoding_gives_the_same_text() {
    let text = "GPU0\t X \n";
    let wide: Vec<u16> = text.encode_utf16().collect();
    let little: Vec<u8> = wide.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = wide.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    for bytes in [
        text.as_bytes().to_vec(),
        [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat(),
        [&[0xff, 0xfe], &little[..]].concat(),
        [&[0xfe, 0xff], &big[..]].concat(),
        little,
        big,
    ] {
        assert_eq!(decode(&bytes), text, "{bytes:?}");
    }
    assert_eq!(decode(b""), "");
    assert_eq!(decode(b"a\xffb"), "a\u{fffd}b");
}

#[test]
fn what_is_too_long_is_refused() {
    let bytes = vec![b' '; usize::try_from(MOST_BYTES).unwrap() + 1];
    assert!(read_bytes(&bytes, None).unwrap_err().to_string().contains("64 MiB"));
}

#[test]
fn a_path_is_named_in_every_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.json");
    let error = || read_path(&path, None).unwrap_err().to_string();
    assert!(error().starts_with("cannot read") && error().contains("t.json"));
    fs::write(&path, "nothing of the kind").unwrap();
    assert!(error().contains("t.json: no topology found"), "{}", error());
    let empty = read_path(folder.path(), None);
    fs::write(&path, GpuTopology::new([0, 1]).to_json()).unwrap();
    assert_eq!(read_path(&path, None).unwrap().len(), 1);
    assert!(empty.unwrap_err().to_string().contains("/sys"));
}
