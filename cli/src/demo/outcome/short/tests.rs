//! Tests of telling what went wrong in few lines.

use super::*;

fn kernel(name: &str, device: usize, phase: &'static str, fault: Option<&str>) -> KernelRow {
    KernelRow {
        name: name.to_owned(),
        program: "diffuse-4".to_owned(),
        device_at_start: device,
        device_at_end: Some(device),
        steps: 40 + device as u64,
        phase,
        fault: fault.map(str::to_owned),
        since_last_step_ms: Some(7),
        mailbox_depth: 0,
        pending_output: 0,
        state_bytes: 64,
    }
}

#[test]
fn lost_kernels_are_told_by_device() {
    let lost = |name: String, device| kernel(&name, device, "lost", Some("pulled out"));
    let mut kernels: Vec<_> = (0..9).map(|at| lost(format!("strip-{at:02}"), 1)).collect();
    kernels[4].steps = 43;
    kernels[5].since_last_step_ms = Some(12);
    kernels[6].since_last_step_ms = None;
    kernels.push(kernel("strip-09", 0, "ready", None));
    kernels.extend([lost("strip-10".to_owned(), 2), lost("strip-11".to_owned(), 2)]);
    let expected = [
        "9 kernels on device 1 are lost: pulled out; their last states are those of steps 41 to \
         43, committed 7 to 12 ms ago: strip-00, strip-01, strip-02, ... (--json has all)",
        "2 kernels on device 2 are lost: pulled out; their last states are those of steps 42 to \
         42, committed 7 to 7 ms ago: strip-10, strip-11",
    ];
    assert_eq!(kernel_failures(&kernels), expected);
}

#[test]
fn one_kernel_is_told_by_itself_and_causes_are_counted() {
    let alone = kernel("strip-00", 0, "lost", Some("pulled out"));
    assert_eq!(kernel_failures(std::slice::from_ref(&alone)), [alone.failure().unwrap()]);
    let fault = |at: usize| format!("fault {}", at.min(2));
    let stopped =
        |at| KernelRow { since_last_step_ms: None, ..kernel("k", 0, "failed", Some(&fault(at))) };
    let kernels: Vec<_> = [alone].into_iter().chain((0..5).map(stopped)).collect();
    let told = kernel_failures(&kernels);
    assert_eq!(told.len(), 2, "{told:?}");
    let stopped = "5 kernels on device 0 have stopped: fault 0 (and 2 other causes, see --json): ";
    assert!(told[0].starts_with(stopped), "{told:?}");
    assert_eq!(kernel_failures(&[]), [""; 0]);
}
