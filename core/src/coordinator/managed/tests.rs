//! Who may change the record of which kernel, and what a leaving device's routes are.

use super::super::{CoordinatorError, MultiGpuConfig};
use super::*;
use crate::device_info::{BackendKind, DeviceInfo};

#[test]
fn each_side_changes_its_own_kernels_only() -> Result<()> {
    let coordinator = MultiGpuCoordinator::new(MultiGpuConfig::default());
    for index in 0..3 {
        coordinator.register_device(DeviceInfo::new(index, "share", BackendKind::Host))?;
    }
    let (managed, direct) = (KernelId::new("managed"), KernelId::new("direct"));
    let on_0 = LaunchOptions::new().with_preferred_devices([0]);
    assert_eq!(coordinator.place_managed(managed, &on_0)?.device, 0);
    coordinator.assign_kernel(direct, 0)?;
    let request = coordinator.request_migration_managed(&managed, 1)?;

    let hands_off = CoordinatorError::ManagedByFleet { kernel: managed };
    let refused = [
        coordinator.assign_kernel(managed, 2),
        coordinator.remove_kernel(&managed),
        coordinator.request_migration(&managed, 2).map(drop),
        coordinator.complete_migration(&request),
        coordinator.cancel_migration(&request),
        coordinator.set_kernel_priority(&managed, Default::default()),
    ];
    for outcome in refused {
        assert_eq!(outcome, Err(hands_off.clone()));
    }
    let foreign = CoordinatorError::NotManaged { kernel: direct };
    assert_eq!(coordinator.remove_managed(&direct), Err(foreign.clone()));
    assert_eq!(coordinator.request_migration_managed(&direct, 1), Err(foreign));
    assert_eq!(coordinator.get_kernel_device(&managed), Some(0));
    assert_eq!(coordinator.stats().reserved, 1, "the request stands");

    let plans = coordinator.unregister_device(0).plans;
    let plan = plans.iter().find(|plan| plan.kernel == managed).expect("it is on device 0");
    assert_eq!(plan.target, 1, "it is on its way there");
    let request = coordinator.request_planned_managed(plan)?;
    coordinator.cancel_migration_managed(&request)?;
    let request = coordinator.request_planned_managed(plan)?;
    coordinator.complete_migration_managed(&request)?;
    assert_eq!(coordinator.get_kernel_device(&managed), Some(1));
    coordinator.remove_managed(&managed)
}

#[test]
fn routes_reach_a_leaving_device_but_do_not_pass_it() -> Result<()> {
    use hopwise_topology::{Figure, GpuConnection, GpuTopology, InterconnectType, RouteKind};

    let coordinator = MultiGpuCoordinator::new(MultiGpuConfig::default());
    for index in 0..3 {
        let info = DeviceInfo::new(index, "gpu", BackendKind::Cuda).with_peer_access(true);
        coordinator.register_device(info)?;
    }
    let mut chain = GpuTopology::new(0..3);
    for (from, to) in [(0, 1), (1, 2)] {
        let kind = InterconnectType::NvLink { generation: Some(4), links: 18 };
        let figure = |value| Figure::reported(value, "test").expect("it is positive");
        let link = GpuConnection::new(from, to, kind)
            .with_bandwidth(figure(450.0))
            .with_latency(figure(2.0));
        chain.set_connection_both(link).expect("both devices are in it");
    }
    coordinator.set_topology(chain)?;
    let kind = |from, to| coordinator.routes().route(from, to, 4096).map(|route| route.kind);
    assert_eq!(kind(0, 2), Some(RouteKind::MultiHop));
    coordinator
        .place_managed(KernelId::new("stays"), &LaunchOptions::new().with_preferred_devices([1]))?;
    assert_eq!(coordinator.unregister_device(1).plans.len(), 1);
    assert_eq!(kind(0, 2), Some(RouteKind::HostMediated), "no route passes it");
    assert_eq!(kind(1, 2), Some(RouteKind::Direct), "its kernels can be copied off it");
    assert_eq!(kind(0, 7), None);
    Ok(())
}
