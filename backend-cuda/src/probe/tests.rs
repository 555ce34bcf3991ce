//! The text for a person.

use super::*;
use crate::library::Attempt;

#[test]
fn what_is_missing_is_printed_with_its_remedy() {
    let attempts = vec![Attempt { name: "libx.so".into(), error: "no such file".into() }];
    let probe = Probe {
        driver: DriverOutcome::Missing { attempts: attempts.clone() },
        nvrtc: LibraryOutcome::Missing { attempts },
        nvml: LibraryOutcome::Found { name: "libnvidia-ml.so.1".into() },
        without_instances: vec!["GPU-1".into()],
    };
    let text = probe.to_string();
    assert!(text.starts_with("CUDA driver: missing\n  tried libx.so: no such file"), "{text}");
    assert!(
        text.contains("GPU-1 is in MIG mode and has no instance\n  remedy: make one"),
        "{text}"
    );
    assert!(text.contains("remedy: install the NVIDIA driver"), "{text}");
    assert!(text.contains("remedy: install the CUDA toolkit's NVRTC"), "{text}");
    assert!(text.contains("\nNVML: found as libnvidia-ml.so.1"), "{text}");
}
