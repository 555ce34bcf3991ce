//! What is known about the adapters of this machine, and what opening them finds out.

use std::sync::Arc;

use hopwise_backend_wgpu::{AdapterFilter, AdapterKind, WgpuBackend, WgpuOptions};
use hopwise_core::backend::Backend;
use hopwise_core::device::Device;
use hopwise_core::device_info::Overrun;
use hopwise_core::error::DeviceError;

#[test]
fn facts_of_every_adapter_are_consistent() {
    let backend = WgpuBackend::new(WgpuOptions::new());
    for (facts, info) in backend.adapters().zip(backend.enumerate().unwrap_or_default()) {
        eprintln!("{facts:#?}\n{info:#?}");
        assert_eq!(facts.adapter.name, info.name);
        assert_eq!(info.identity.is_stable(), facts.adapter.pci_address.is_some());
        assert!(facts.max_state_bytes >= facts.max_binding_bytes.min(1 << 30) / 2);
        assert!(facts.subgroup_sizes.0 <= facts.subgroup_sizes.1);
        assert!(info.available_memory_bytes <= info.total_memory_bytes);
        let device = backend.open(info.index).unwrap();
        eprintln!("{:#?}", device.limits());
        // What hardware does not bind when it is tried is not offered.
        assert!(device.limits().max_state_bytes <= facts.max_state_bytes);
        assert_eq!(device.limits().overrun, Overrun::LosesDevice);
        if facts.adapter.name.starts_with("llvmpipe") {
            assert_eq!(facts.adapter.kind, AdapterKind::Cpu);
            let memory = facts.memory.expect("this driver tells how much memory there is");
            assert!(memory.total_bytes > 0);
            let cut = device.limits().max_loop_iterations;
            assert!(cut.is_some_and(|cut| (65_000..=65_536).contains(&cut)), "{cut:?}");
        }
    }
}

#[test]
fn logical_devices_are_told_apart_and_fail_together() {
    let options = WgpuOptions::new().with_logical_devices(2).with_memory_bytes(1 << 20);
    let backend = WgpuBackend::new(options);
    let Ok(listed) = backend.enumerate() else {
        eprintln!("not tried: there is no adapter");
        return;
    };
    assert_eq!(listed.len(), 2 * backend.adapters().count());
    assert_ne!(listed[0].identity, listed[1].identity);
    assert!(listed[0].shares_failure_domain(&listed[1]));
    let [first, second] = [0, 1].map(|ordinal| backend.open_wgpu(ordinal).unwrap());
    let again = backend.open_wgpu(1).unwrap();
    assert_eq!(second.info().identity, listed[1].identity);
    assert_ne!(again.info().identity, second.info().identity);
    assert_eq!(first.memory().unwrap().total_bytes, 1 << 20);
    drop(second);
    let second = backend.open_wgpu(1).unwrap();
    assert_eq!(second.info().identity, listed[1].identity, "what was dropped has no identity");

    assert!(first.lose("pulled out by a test"));
    assert!(!first.lose("a second time"));
    let lost = Err(DeviceError::Lost { cause: "pulled out by a test".to_owned() });
    for device in [&first, &second, &again] {
        assert_eq!(device.memory(), lost);
    }
    let reopened = backend.open_wgpu(0).unwrap();
    assert!(reopened.memory().is_ok(), "a device opened anew has a new latch");
    assert_eq!(reopened.info().identity, listed[0].identity);
    assert!(!first.health().is_working());
}

#[test]
fn a_logical_device_can_have_a_quota_of_its_own() {
    let options = WgpuOptions::new().with_logical_devices(2);
    let options = options.with_memory_bytes(1 << 20).with_memory_bytes_of(1, 1 << 21);
    let backend = WgpuBackend::new(options);
    let Ok(listed) = backend.enumerate() else {
        eprintln!("not tried: there is no adapter");
        return;
    };
    let quotas: Vec<_> = listed[..2].iter().map(|info| info.total_memory_bytes).collect();
    assert_eq!(quotas, [1 << 20, 1 << 21]);
    // The second time the listed device is taken and a new one made.
    for _ in 0..2 {
        let device = backend.open_wgpu(1).unwrap();
        assert_eq!(device.memory().unwrap().total_bytes, 1 << 21);
    }
}

#[test]
fn a_device_destroyed_by_the_driver_is_lost() {
    let backend = WgpuBackend::new(WgpuOptions::new().with_memory_bytes(1 << 20));
    let Ok(device) = backend.open_wgpu(0) else {
        eprintln!("not tried: there is no adapter");
        return;
    };
    let heard = Arc::new(std::sync::Mutex::new(None));
    let hears = Arc::clone(&heard);
    device.health().on_loss(Box::new(move |cause| *hears.lock().unwrap() = Some(cause.clone())));
    device.destroy();
    let lost = DeviceError::Lost { cause: "it was destroyed".to_owned() };
    assert_eq!(device.memory(), Err(lost.clone()));
    assert_eq!(*heard.lock().unwrap(), Some(lost));
}

#[test]
fn filters_choose_adapters_and_say_what_was_looked_for() {
    let all = WgpuBackend::new(WgpuOptions::new());
    for facts in all.adapters() {
        let filter = AdapterFilter::Index(facts.index);
        let one = WgpuBackend::new(WgpuOptions::new().with_adapter(filter));
        assert_eq!(one.adapters().map(|facts| facts.index).collect::<Vec<_>>(), [facts.index]);
    }
    let filter = AdapterFilter::Name("no such card".to_owned());
    let none = WgpuBackend::new(WgpuOptions::new().with_adapter(filter));
    let Err(DeviceError::Unavailable { reason }) = none.enumerate() else {
        panic!("no adapter has that name");
    };
    assert!(reason.contains("no such card"), "{reason}");
}
