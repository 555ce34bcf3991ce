//! The probe on the machine that runs the test, with or without a GPU.

use hopwise_backend_wgpu::{ApiOutcome, probe};

#[test]
fn every_api_lists_adapters_or_says_what_is_missing() {
    let probe = probe();
    let mut listed = 0;
    for (api, outcome) in probe.apis() {
        match outcome {
            ApiOutcome::Adapters(count) => {
                assert!(*count > 0, "{api}");
                listed += count;
            }
            ApiOutcome::NoAdapter(missing) => {
                assert!(!missing.reason.is_empty() && !missing.remedy.is_empty(), "{api}");
                assert!(probe.to_string().contains(&missing.reason), "{probe}");
            }
            other => panic!("{api}: {other:?}"),
        }
    }
    let accesses: usize = probe.adapters().iter().map(|adapter| adapter.accesses.len()).sum();
    assert_eq!(accesses, listed, "every listed adapter is one way to reach a card");
    assert!(!probe.to_string().is_empty());
}

#[test]
fn probing_again_gives_the_same_answer() {
    assert_eq!(probe(), probe());
}
