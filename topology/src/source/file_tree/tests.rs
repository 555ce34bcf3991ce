//! A file tree from a directory and from `grep -r`.

use std::fs;

use super::{Entry, FileTree};

#[test]
fn a_directory_and_its_grep_are_the_same_tree() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("nodes/0/io_links/0")).unwrap();
    fs::write(root.join("nodes/0/io_links/0/properties"), "type 2\nweight 20\n").unwrap();
    fs::write(root.join("nodes/0/name"), "\n").unwrap();
    fs::write(root.join("unwanted"), "x").unwrap();
    let tree = FileTree::read(root, |entry| entry != Entry::File("unwanted")).unwrap();
    let grep = FileTree::from_grep(
        "./nodes/0/io_links/0/properties:type 2\n./nodes/0/io_links/0/properties:weight 20\n\
         nodes/0/name:\nbinary file matches\n",
    );
    assert!(tree.files().eq(grep.files()), "{tree:?} {grep:?}");
    assert_eq!(tree.below("nodes/0").children("").collect::<Vec<_>>(), ["io_links", "name"]);
}

#[test]
fn a_missing_directory_is_named() {
    let error = FileTree::read("no/such/place".as_ref(), |_| true).unwrap_err();
    assert!(error.to_string().contains("no/such/place"), "{error}");
}

#[test]
fn an_archive_is_the_tree_that_was_put_in() {
    let mut builder = tar::Builder::new(Vec::new());
    let mut add = |path: &str, text: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_cksum();
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    };
    add("./nodes/0/name", "gfx90a\n");
    add("nodes/1/name", "gfx942\n");
    let plain = builder.into_inner().unwrap();
    let tree = FileTree::from_archive(&plain).unwrap();
    assert_eq!(tree.file("nodes/0/name"), Some("gfx90a"));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &plain).unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(FileTree::from_archive(&packed).unwrap(), tree);
    for cut in 0..packed.len() {
        let _ = FileTree::from_archive(&packed[..cut]);
    }
    assert!(FileTree::from_archive(&[0x1f, 0x8b, 0, 0]).is_err());
}

#[test]
fn an_archive_that_unpacks_without_end_is_refused() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut header = tar::Header::new_gnu();
    header.set_path("a").unwrap();
    header.set_size(1 << 33);
    header.set_cksum();
    std::io::Write::write_all(&mut encoder, header.as_bytes()).unwrap();
    for _ in 0..300 {
        std::io::Write::write_all(&mut encoder, &vec![0; 1 << 20]).unwrap();
    }
    let error = FileTree::from_archive(&encoder.finish().unwrap()).unwrap_err();
    assert!(error.contains("MiB"), "{error}");
}
