//! Dependencies that go up, sideways or to a driver.

use super::super::{Tree, Workspace};
use super::check;
use crate::metadata::made_up;

fn found(packages: &[(&str, &[&str])]) -> Vec<String> {
    let workspace = Workspace { tree: Tree::default(), metadata: made_up(packages) };
    check(&workspace).iter().map(ToString::to_string).collect()
}

#[test]
fn the_house_as_it_should_be() {
    let house = [
        ("hopwise-topology", &["petgraph", "dev:criterion"][..]),
        ("hopwise-core", &["hopwise-topology", "dev:hopwise-core"]),
        ("hopwise-backend-wgpu", &["hopwise-core", "wgpu"]),
        ("hopwise-backend-cuda", &["hopwise-core", "hopwise-topology", "libloading"]),
        ("hopwise-migrate", &["hopwise-core", "hopwise-topology"]),
        ("hopwise", &["hopwise-backend-wgpu", "hopwise-backend-cuda", "hopwise-migrate"]),
        ("xtask", &["serde"]),
        ("petgraph", &[]),
        ("criterion", &["libloading"]),
        ("wgpu", &["ash"]),
        ("ash", &["libloading"]),
        ("libloading", &[]),
        ("serde", &[]),
    ];
    assert!(found(&house).is_empty());
}

#[test]
fn a_dependency_upwards_or_sideways_is_found() {
    let house = [
        ("hopwise-topology", &["hopwise-core"][..]),
        ("hopwise-core", &["dev:hopwise-backend-cuda"]),
        ("hopwise-backend-wgpu", &["hopwise-backend-cuda"]),
        ("hopwise-backend-cuda", &[]),
        ("xtask", &["hopwise-topology"]),
    ];
    assert_eq!(
        found(&house),
        [
            "hopwise-topology: must not depend on hopwise-core",
            "hopwise-core: must not depend on hopwise-backend-cuda",
            "hopwise-backend-wgpu: must not depend on hopwise-backend-cuda",
            "xtask: must not depend on hopwise-topology",
        ]
    );
}

#[test]
fn a_driver_below_the_core_is_found_through_others() {
    let house = [
        ("hopwise-core", &["innocent", "petgraph"][..]),
        ("innocent", &["wgpu"]),
        ("wgpu", &[]),
        ("petgraph", &[]),
    ];
    assert_eq!(
        found(&house),
        [
            "hopwise-core: must not depend on petgraph: that is for hopwise-topology alone",
            "hopwise-core: must not reach wgpu; `cargo tree -i wgpu` shows how",
        ]
    );
}

#[test]
fn a_new_crate_needs_a_floor() {
    let house = [("hopwise-fuzz", &[][..])];
    assert_eq!(found(&house), ["hopwise-fuzz: is on no floor: add it to the layers in xtask"]);
}
