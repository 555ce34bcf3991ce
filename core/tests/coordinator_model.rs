//! Every law of the coordinator against a sequential model, for random sequences of operations.

#[path = "coordinator_model/model.rs"]
mod model;

use std::collections::BTreeMap;
use std::sync::Arc;

use hopwise_core::{
    BackendKind, CoordinatorError, DeviceInfo, DeviceState, DeviceUnregisterResult, KernelId,
    LaunchOptions, LoadBalancingStrategy, MigrationRequest, MultiGpuConfig, MultiGpuCoordinator,
};
use model::{Model, Outcome};
use proptest::prelude::*;

const CAPACITY: usize = 3;
const TOTAL_BYTES: u64 = 12;
const INDICES: usize = 4;
const KERNELS: usize = 10;

#[derive(Clone, Debug)]
enum Operation {
    Register(usize),
    Unregister(usize),
    SetState(usize, DeviceState),
    Report(usize, u64),
    Select(u64, Vec<usize>),
    Place(usize, u64, Vec<usize>),
    Assign(usize, usize),
    Remove(usize),
    Request(usize, usize),
    /// The request made this many requests ago.
    Complete(usize),
    Cancel(usize),
}

fn operation() -> impl Strategy<Value = Operation> {
    let index = || 0..INDICES;
    let kernel = || 0..KERNELS;
    let preferred = || prop_oneof![3 => Just(vec![]), 1 => prop::collection::vec(0..INDICES, 1..3)];
    let state = prop_oneof![
        Just(DeviceState::Active),
        Just(DeviceState::Degraded),
        Just(DeviceState::Leaving),
        Just(DeviceState::Unresponsive),
        Just(DeviceState::Lost),
        Just(DeviceState::Probation),
    ];
    prop_oneof![
        4 => index().prop_map(Operation::Register),
        2 => index().prop_map(Operation::Unregister),
        3 => (index(), state).prop_map(|(index, state)| Operation::SetState(index, state)),
        1 => (index(), 0..=TOTAL_BYTES + 1).prop_map(|(index, bytes)| Operation::Report(index, bytes)),
        2 => (0..6_u64, preferred()).prop_map(|(bytes, set)| Operation::Select(bytes, set)),
        8 => (kernel(), 0..6_u64, preferred())
            .prop_map(|(kernel, bytes, set)| Operation::Place(kernel, bytes, set)),
        3 => (kernel(), index()).prop_map(|(kernel, index)| Operation::Assign(kernel, index)),
        3 => kernel().prop_map(Operation::Remove),
        6 => (kernel(), index()).prop_map(|(kernel, index)| Operation::Request(kernel, index)),
        4 => (0..4_usize).prop_map(Operation::Complete),
        2 => (0..4_usize).prop_map(Operation::Cancel),
    ]
}

/// The name of an error's variant.
fn variant(error: &CoordinatorError) -> String {
    let text = format!("{error:?}");
    text.split([' ', '{', '(']).next().unwrap_or_default().to_owned()
}

struct Pair {
    real: Arc<MultiGpuCoordinator>,
    model: Model,
    kernels: Vec<KernelId>,
    requests: Vec<MigrationRequest>,
}

impl Pair {
    fn new(strategy: LoadBalancingStrategy) -> Self {
        let config = MultiGpuConfig::builder()
            .load_balancing(strategy)
            .max_kernels_per_device(CAPACITY)
            .build();
        Self {
            real: MultiGpuCoordinator::new(config),
            model: Model::new(CAPACITY, TOTAL_BYTES, strategy),
            kernels: (0..KERNELS).map(|number| KernelId::new(format!("k{number}"))).collect(),
            requests: Vec::new(),
        }
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Register(index) => {
                let info = DeviceInfo::new(index, format!("gpu{index}"), BackendKind::Cuda)
                    .with_memory(TOTAL_BYTES);
                same(self.real.register_device(info), self.model.register(index));
            }
            Operation::Unregister(index) => {
                let was_leaving = self.real.get_device_status(index).map(|status| status.state)
                    == Some(DeviceState::Leaving);
                self.model.unregister(index);
                let result = self.real.unregister_device(index);
                assert_eq!(result.already_leaving, was_leaving);
                self.check_plans(index, &result);
            }
            Operation::SetState(index, state) => {
                same(self.real.set_device_state(index, state), self.model.set_state(index, state));
            }
            Operation::Report(index, bytes) => {
                same(self.real.update_device_memory(index, bytes), self.model.report(index, bytes));
            }
            Operation::Select(bytes, ref preferred) => {
                let options = options(bytes, preferred);
                let explained = self.real.explain(&options).choice();
                let real = self.real.select_device(&options);
                assert_eq!(real.as_ref().ok().copied(), explained, "explain tells the choice");
                same(real, self.model.select(bytes, preferred));
            }
            Operation::Place(kernel, bytes, ref preferred) => {
                let kernel = self.kernels[kernel];
                let real = self.real.place(kernel, &options(bytes, preferred));
                let real = real.map(|placement| placement.device);
                same(real, self.model.place(kernel, bytes, preferred));
            }
            Operation::Assign(kernel, index) => {
                let kernel = self.kernels[kernel];
                same(self.real.assign_kernel(kernel, index), self.model.assign(kernel, index));
            }
            Operation::Remove(kernel) => {
                let kernel = self.kernels[kernel];
                same(self.real.remove_kernel(&kernel), self.model.remove(kernel));
            }
            Operation::Request(kernel, index) => self.request(self.kernels[kernel], index),
            Operation::Complete(back) => {
                if let Some(request) = self.requests.iter().rev().nth(back) {
                    same(self.real.complete_migration(request), self.model.complete(request));
                }
            }
            Operation::Cancel(back) => {
                if let Some(request) = self.requests.iter().rev().nth(back) {
                    same(self.real.cancel_migration(request), self.model.cancel(request));
                }
            }
        }
    }

    fn request(&mut self, kernel: KernelId, index: usize) {
        let expected = self.model.may_request(kernel, index);
        let real = self.real.request_migration(&kernel, index);
        same(real.as_ref().map(|_| ()).map_err(Clone::clone), expected);
        if let Ok(request) = real {
            self.model.grant(request);
            self.requests.push(request);
        }
    }

    /// Law 7: every kernel once, nobody where there is no room, orphans only where nothing fits.
    fn check_plans(&mut self, index: usize, result: &DeviceUnregisterResult) {
        let Some(device) = self.model.devices.get(&index) else {
            assert!(result.is_gone());
            return;
        };
        let planned = result.plans.iter().map(|plan| plan.kernel).chain(result.orphans.clone());
        let mut planned: Vec<_> = planned.collect();
        planned.sort_unstable();
        let mut there: Vec<_> = device.kernels.iter().map(|(kernel, _)| *kernel).collect();
        there.sort_unstable();
        assert_eq!(planned, there, "each kernel is planned or an orphan, and none is both");

        let bytes_of: BTreeMap<_, _> =
            device.kernels.iter().map(|(kernel, promise)| (*kernel, promise.bytes)).collect();
        let mut after = self.model.devices.clone();
        let mut last_in_turn = None;
        for plan in &result.plans {
            let target = after.get_mut(&plan.target).expect("targets are registered");
            assert_eq!(plan.target_incarnation.raw(), target.incarnation);
            let underway = self.model.requests.get(&plan.kernel);
            let reserved = underway
                .filter(|request| request.target == plan.target)
                .and_then(|request| target.reservations.remove(&request.id));
            let is_underway = reserved.is_some();
            assert!(is_underway || target.state == DeviceState::Active);
            last_in_turn = if is_underway { last_in_turn } else { Some(plan.target) };
            let bytes = bytes_of[&plan.kernel];
            assert!(is_underway || bytes <= target.available(TOTAL_BYTES), "memory is there");
            // A reservation that a report counted already is not counted again when it is used.
            let new = model::Promise { bytes, before_report: false };
            let promise = reserved.map_or(new, |(_, promise)| promise);
            target.kernels.push((plan.kernel, promise));
            assert!(target.used() <= CAPACITY, "plans count one another");
        }
        if let Some(last) = last_in_turn
            && self.model.strategy == LoadBalancingStrategy::RoundRobin
        {
            self.model.turn = last + 1;
        }
        for orphan in &result.orphans {
            for target in after.values().filter(|target| target.state == DeviceState::Active) {
                let fits =
                    target.used() < CAPACITY && bytes_of[orphan] <= target.available(TOTAL_BYTES);
                assert!(!fits, "an orphan has nowhere to go");
            }
        }
    }

    /// Everything that can be seen agrees with the model.
    fn compare(&self) {
        let statuses = self.real.get_all_status();
        assert_eq!(statuses.len(), self.model.devices.len());
        for (status, (&index, device)) in statuses.iter().zip(&self.model.devices) {
            assert_eq!(status.index(), index);
            assert_eq!(status.incarnation.raw(), device.incarnation);
            assert_eq!(status.state, device.state);
            assert_eq!(status.kernel_count, device.kernels.len());
            assert_eq!(status.reserved, device.reservations.len());
            assert_eq!(status.available_memory_bytes, device.available(TOTAL_BYTES));
            assert!(device.used() <= CAPACITY);
            let kernels: Vec<_> = device.kernels.iter().map(|(kernel, _)| *kernel).collect();
            assert_eq!(self.real.kernels_on_device(index), kernels);
        }
        for &kernel in &self.kernels {
            assert_eq!(self.real.get_kernel_device(&kernel), self.model.device_of(kernel));
        }
        let staying: Vec<_> = self
            .model
            .devices
            .iter()
            .filter(|(_, device)| device.state != DeviceState::Leaving)
            .map(|(&index, _)| index)
            .collect();
        let devices: Vec<_> = self.real.devices().iter().map(|info| info.index).collect();
        assert_eq!(devices, staying);
        assert_eq!(self.real.device_count(), staying.len());
        assert_eq!(self.real.topology().devices().collect::<Vec<_>>(), staying);
        let stats = self.real.stats();
        assert_eq!(stats.device_count, staying.len());
        assert_eq!(stats.total_kernels, self.model.launched);
        let kernels: usize = statuses.iter().map(|status| status.kernel_count).sum();
        let reserved: usize = statuses.iter().map(|status| status.reserved).sum();
        assert_eq!((stats.mapped_kernels, stats.reserved), (kernels, reserved));
    }
}

fn options(bytes: u64, preferred: &[usize]) -> LaunchOptions {
    LaunchOptions::new()
        .with_required_memory(bytes)
        .with_preferred_devices(preferred.iter().copied())
}

fn same<T: PartialEq + std::fmt::Debug>(real: Result<T, CoordinatorError>, model: Outcome<T>) {
    assert_eq!(real.map_err(|error| variant(&error)), model.map_err(str::to_owned));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_coordinator_agrees_with_the_model(
        strategy in prop_oneof![
            Just(LoadBalancingStrategy::FirstAvailable),
            Just(LoadBalancingStrategy::LeastLoaded),
            Just(LoadBalancingStrategy::RoundRobin),
            Just(LoadBalancingStrategy::MemoryBased),
        ],
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        let mut pair = Pair::new(strategy);
        for operation in &operations {
            pair.apply(operation);
            pair.compare();
        }
    }
}
