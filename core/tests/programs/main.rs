//! The programs that hopwise ships, run one step at a time without fleet or threads.
#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod counter;
mod diffuse;
mod diffuse_faults;
mod diffuse_formula;
mod interpreter;
mod token_ring;

use hopwise_core::program::{ProgramRegistry, RegistryError};
use hopwise_core::programs;

#[test]
fn programs_are_found_by_name() {
    let registry = ProgramRegistry::new();
    programs::register_all(&registry).unwrap();
    programs::register_all(&registry).unwrap();
    assert_eq!(registry.names(), ["counter", "token_ring"]);
    for name in ["counter", "token_ring", "diffuse-1", "diffuse-65536"] {
        assert_eq!(programs::by_name(name).unwrap().name(), name);
    }
    assert!(programs::all().iter().all(|program| registry.find(program.name()).is_ok()));
    let wrong =
        ["", "diffuse", "diffuse-", "diffuse-0", "diffuse-064", "diffuse-+4", "diffuse-65537"];
    for name in wrong {
        let error = programs::by_name(name).unwrap_err();
        assert!(matches!(error, RegistryError::Unknown { .. }), "{name}");
        assert!(error.to_string().contains("token_ring"), "{error}");
    }
}

#[test]
fn a_program_is_the_same_whenever_it_is_made() {
    for name in ["counter", "token_ring", "diffuse-17"] {
        let digest = || programs::by_name(name).unwrap().digest();
        assert_eq!(digest(), digest());
    }
}
