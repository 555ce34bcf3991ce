//! Reasons and texts.

use super::*;

#[test]
fn the_words_about_one_api_are_taken_from_wgpus_error() {
    let error = "No suitable graphics adapter found; noop not requested, \
                 vulkan found no adapters, metal not requested";
    assert_eq!(about_api(error, Api::Vulkan), "wgpu says: found no adapters");
    assert_eq!(about_api("other words", Api::Vulkan), "wgpu says: other words");
}

#[test]
fn a_missing_loader_is_named_with_folders_and_remedy() {
    let missing = Missing::of_vulkan("wgpu says: x", vec!["no-such-folder".into()]);
    let text = missing.to_string();
    assert!(text.starts_with("no Vulkan loader ("), "{text}");
    assert!(text.contains("\n  searched no-such-folder\n  remedy: install"), "{text}");
}

#[test]
fn a_probe_without_adapters_prints_what_is_missing() {
    let missing = Missing { reason: "none".into(), searched: Vec::new(), remedy: "buy one" };
    let apis = vec![(Api::Vulkan, ApiOutcome::NoAdapter(missing))];
    let probe = Probe { adapters: Vec::new(), apis };
    assert_eq!(probe.to_string(), "Vulkan: none\n  remedy: buy one");
}
