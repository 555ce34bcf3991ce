//! Tests of opening devices on an adapter of this machine.

use super::*;
use crate::device_list::DeviceList;

/// Devices on the first adapter, named by index and by name. Says so where there is no adapter.
fn under_two_names(test: &str) -> Option<Vec<Wanted>> {
    let probe = hopwise_backend_wgpu::probe();
    let Some(adapter) = probe.adapters().first() else {
        eprintln!("{test} was skipped: this machine has no adapter for wgpu");
        return None;
    };
    let list = format!("wgpu[0]:1,host:1,wgpu[{}]:1", adapter.name);
    Some(list.parse::<DeviceList>().unwrap().0)
}

fn adapters(opened: Vec<OpenDevice>) -> Vec<Arc<WgpuDevice>> {
    let devices = opened.into_iter().filter_map(|device| match device {
        OpenDevice::Wgpu(device) => Some(device),
        OpenDevice::Host(_) | OpenDevice::Cuda(_) => None,
    });
    devices.collect()
}

#[test]
fn devices_under_two_names_of_an_adapter_fall_together() {
    let test = "devices_under_two_names_of_an_adapter_fall_together";
    let Some(devices) = under_two_names(test) else { return };
    let opened = open(&devices).unwrap();
    assert!(matches!(opened[1], OpenDevice::Host(_)), "{opened:?}");
    opened[2].lose("pulled out by a test");
    let health = opened.iter().map(|device| device.device().health().is_working());
    assert_eq!(health.collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn devices_under_two_names_of_an_adapter_divide_its_memory() {
    let test = "devices_under_two_names_of_an_adapter_divide_its_memory";
    let Some(mut devices) = under_two_names(test) else { return };
    let opened = adapters(open(&devices).unwrap());
    let alone = adapters(open(&devices[..1]).unwrap());
    let [first, second] = [0, 1].map(|at| opened[at].info().clone());
    assert_eq!(first.total_memory_bytes, alone[0].info().total_memory_bytes / 2);
    assert_eq!(first.total_memory_bytes, second.total_memory_bytes);
    assert_ne!(first.identity, second.identity);
    devices[2].memory_bytes = Some(1 << 20);
    let quotas = adapters(open(&devices).unwrap());
    let quotas = quotas.iter().map(|device| device.memory().unwrap().total_bytes);
    assert_eq!(quotas.collect::<Vec<_>>(), [first.total_memory_bytes, 1 << 20]);
}
