//! The coordinator as a user of its written description would use it: every method of it, with
//! those names and arguments.

use std::sync::Arc;

use hopwise_core::coordinator::Result;
use hopwise_core::{
    BackendKind, DeviceInfo, DeviceStatus, DeviceUnregisterResult, GpuConnection, GpuTopology,
    InterconnectType, KernelId, KernelMigrationPlan, LaunchOptions, LoadBalancingStrategy,
    MigrationPriority, MigrationRequest, MultiGpuConfig, MultiGpuCoordinator, MultiGpuStats,
};

fn two_gpus() -> Result<Arc<MultiGpuCoordinator>> {
    let coordinator = MultiGpuCoordinator::new(MultiGpuConfig {
        load_balancing: LoadBalancingStrategy::LeastLoaded,
        max_kernels_per_device: 16,
        ..MultiGpuConfig::default()
    });
    for index in 0..2 {
        let device = DeviceInfo::new(index, format!("GPU {index}"), BackendKind::Cuda)
            .with_memory(24 << 30)
            .with_compute_capability(8, 6)
            .with_peer_access(true);
        coordinator.register_device(device)?;
    }
    Ok(coordinator)
}

#[test]
fn devices_are_registered_and_described() -> Result<()> {
    let coordinator = two_gpus()?;
    let devices: Vec<DeviceInfo> = coordinator.devices();
    assert_eq!(devices.len(), coordinator.device_count());
    let first: Option<DeviceInfo> = coordinator.device(0);
    assert_eq!(first.map(|device| device.name), Some("GPU 0".to_owned()));

    coordinator.update_device_memory(0, 20 << 30)?;
    let statuses: Vec<DeviceStatus> = coordinator.get_all_status();
    assert_eq!(statuses[0].available_memory_bytes, 20 << 30);
    let status: Option<DeviceStatus> = coordinator.get_device_status(1);
    assert!(status.is_some_and(|status| status.is_available() && status.load() == 0.0));
    Ok(())
}

#[test]
fn kernels_are_launched_and_found() -> Result<()> {
    let coordinator = two_gpus()?;
    let kernel_id = KernelId::new("solver");
    let device: usize = coordinator.select_device(&LaunchOptions::default())?;
    coordinator.assign_kernel(kernel_id, device)?;
    assert_eq!(coordinator.get_kernel_device(&kernel_id), Some(device));
    assert_eq!(coordinator.kernels_on_device(device), [kernel_id]);

    let stats: MultiGpuStats = coordinator.stats();
    assert_eq!((stats.total_kernels, stats.mapped_kernels, stats.device_count), (1, 1, 2));
    coordinator.remove_kernel(&kernel_id)?;
    assert_eq!(coordinator.get_kernel_device(&kernel_id), None);
    Ok(())
}

#[test]
fn a_custom_selector_decides() -> Result<()> {
    let coordinator = MultiGpuCoordinator::new(MultiGpuConfig {
        load_balancing: LoadBalancingStrategy::Custom,
        ..MultiGpuConfig::default()
    });
    for index in [2, 5] {
        coordinator.register_device(DeviceInfo::new(index, "card", BackendKind::Wgpu))?;
    }
    coordinator.set_custom_selector(|devices: &[DeviceStatus], _options: &LaunchOptions| {
        devices.iter().map(|status| status.info.index).max().unwrap_or(0)
    });
    assert_eq!(coordinator.select_device(&LaunchOptions::default())?, 5);
    Ok(())
}

#[test]
fn links_are_discovered_or_set() -> Result<()> {
    let coordinator = two_gpus()?;
    let discovered: GpuTopology = coordinator.discover_topology();
    assert_eq!(coordinator.topology(), discovered);
    assert!(coordinator.can_p2p(0, 1));

    let mut topology = GpuTopology::new(0..2);
    let nvlink = InterconnectType::NvLink { generation: Some(3), links: 4 };
    topology.set_connection(GpuConnection::new(0, 1, nvlink)).expect("both devices are in it");
    coordinator.set_topology(topology.clone())?;
    assert_eq!(coordinator.topology(), topology);
    assert!(coordinator.can_p2p(0, 1) && !coordinator.can_p2p(1, 0), "one way is one way");

    let source_kernel = KernelId::new("producer");
    coordinator.assign_kernel(source_kernel, 1)?;
    let device: usize = coordinator.select_device_for_k2k(&source_kernel)?;
    assert_eq!(device, 1);
    Ok(())
}

#[test]
fn a_device_is_drained() -> Result<()> {
    let coordinator = two_gpus()?;
    let kernel_id = KernelId::new("actor");
    coordinator.assign_kernel(kernel_id, 0)?;

    let result: DeviceUnregisterResult = coordinator.unregister_device(0);
    assert_eq!(result.device_index, 0);
    assert!(result.orphans.is_empty());
    let plan: &KernelMigrationPlan = &result.plans[0];
    assert_eq!((plan.kernel, plan.source, plan.target), (kernel_id, 0, 1));
    assert_eq!(plan.priority, MigrationPriority::Normal);

    let request: MigrationRequest = coordinator.request_migration(&kernel_id, plan.target)?;
    coordinator.cancel_migration(&request)?;
    let request = coordinator.request_migration(&kernel_id, plan.target)?;
    coordinator.complete_migration(&request)?;
    assert_eq!(coordinator.get_kernel_device(&kernel_id), Some(1));
    assert_eq!(coordinator.device_count(), 1);
    Ok(())
}

#[test]
fn requests_and_plans_are_values() -> Result<()> {
    let coordinator = two_gpus()?;
    let kernel_id = KernelId::new("actor");
    coordinator.assign_kernel(kernel_id, 0)?;
    let plan = coordinator.unregister_device(0).plans[0];
    let text = serde_json::to_string(&plan).expect("a plan can be written");
    let read: KernelMigrationPlan = serde_json::from_str(&text).expect("and read");
    assert_eq!(read, plan);
    let request = coordinator.request_planned_migration(&read)?;
    let text = serde_json::to_string(&request).expect("a request can be written");
    let read: MigrationRequest = serde_json::from_str(&text).expect("and read");
    coordinator.complete_migration(&read)?;
    assert_eq!(coordinator.get_kernel_device(&kernel_id), Some(1));
    Ok(())
}
