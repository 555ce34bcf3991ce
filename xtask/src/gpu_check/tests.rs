//! Tests of what stands behind `gpu-check`, and of the archive.

use super::*;

#[test]
fn an_archive_is_packed_or_words_are_passed_on() {
    let order = |arguments: &[&'static str]| Order::read(arguments);
    assert_eq!(order(&[]), Ok(Order { carry: None, passed_on: vec![] }));
    let passed_on = vec!["--devices", "host:2"];
    assert_eq!(order(&["--devices", "host:2"]), Ok(Order { carry: None, passed_on }));
    let carry = Order { carry: Some("a.tar.gz"), passed_on: vec![] };
    assert_eq!(order(&["--carry", "a.tar.gz"]), Ok(carry));
    for wrong in [&["--carry"][..], &["--carry", "a.zip"], &["--carry", "a.tar.gz", "--quick"]] {
        let refused = order(wrong).expect_err("that is no archive");
        assert!(refused.contains("--carry FILE.tar.gz"), "{refused}");
    }
}

#[test]
fn the_archive_has_what_the_script_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let target = std::env::temp_dir().join(format!("hopwise-xtask-{}", std::process::id()));
    fs::create_dir_all(&target).expect("the temporary folder can be written");
    let (program, archive) = (target.join("hopwise"), target.join("carried.tar.gz"));
    fs::write(&program, "a program").expect("the folder is ours");
    let archive = archive.display().to_string();
    pack(&root, &target, &program, &archive).expect("all is there");
    let list = Command::new("tar", &["-tzf", &archive], &root).output().expect("it is an archive");
    for name in ["hopwise", "run.sh", "LICENSE-APACHE", "LICENSE-MIT"] {
        let path = format!("{FOLDER}/{name}");
        assert!(list.lines().any(|line| line == path), "{path} is not in {list}");
    }
    fs::remove_dir_all(&target).expect("the folder is ours");
}
