//! A sequential model of the coordinator: slow, plain, and with nothing shared but the words.

use std::collections::BTreeMap;

use hopwise_core::{DeviceState, KernelId, LoadBalancingStrategy, MigrationRequest};

/// What an operation should answer: the name of the error's variant.
pub(crate) type Outcome<T = ()> = Result<T, &'static str>;

#[derive(Clone, Debug)]
pub(crate) struct Promise {
    pub(crate) bytes: u64,
    pub(crate) before_report: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) incarnation: u64,
    pub(crate) state: DeviceState,
    /// In order of arrival.
    pub(crate) kernels: Vec<(KernelId, Promise)>,
    pub(crate) reservations: BTreeMap<u64, (KernelId, Promise)>,
    pub(crate) reported: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) capacity: usize,
    pub(crate) total_bytes: u64,
    pub(crate) strategy: LoadBalancingStrategy,
    pub(crate) devices: BTreeMap<usize, Device>,
    pub(crate) requests: BTreeMap<KernelId, MigrationRequest>,
    pub(crate) launched: u64,
    pub(crate) turn: usize,
    incarnations: u64,
}

impl Device {
    pub(crate) fn used(&self) -> usize {
        self.kernels.len() + self.reservations.len()
    }

    pub(crate) fn available(&self, total_bytes: u64) -> u64 {
        let promises = || {
            let held = self.reservations.values().map(|(_, promise)| promise);
            self.kernels.iter().map(|(_, promise)| promise).chain(held)
        };
        let all: u64 = promises().map(|promise| promise.bytes).sum();
        let since: u64 =
            promises().filter(|promise| !promise.before_report).map(|promise| promise.bytes).sum();
        self.reported.saturating_sub(since).min(total_bytes.saturating_sub(all))
    }
}

impl Model {
    pub(crate) fn new(capacity: usize, total_bytes: u64, strategy: LoadBalancingStrategy) -> Self {
        Self {
            capacity,
            total_bytes,
            strategy,
            devices: BTreeMap::new(),
            requests: BTreeMap::new(),
            launched: 0,
            turn: 0,
            incarnations: 0,
        }
    }

    pub(crate) fn device_of(&self, kernel: KernelId) -> Option<usize> {
        let holds = |device: &&Device| device.kernels.iter().any(|(other, _)| *other == kernel);
        let found = self.devices.iter().find(|(_, device)| holds(device));
        found.map(|(&index, _)| index)
    }

    fn sweep(&mut self) {
        self.devices
            .retain(|_, device| device.state != DeviceState::Leaving || !device.kernels.is_empty());
    }

    fn obstacle(&self, index: usize, bytes: u64) -> Outcome {
        let device = self.devices.get(&index).ok_or("UnknownDevice")?;
        let accepts = matches!(device.state, DeviceState::Active | DeviceState::Degraded);
        let fits = device.used() < self.capacity && bytes <= device.available(self.total_bytes);
        if accepts && fits { Ok(()) } else { Err("DeviceRefused") }
    }

    pub(crate) fn register(&mut self, index: usize) -> Outcome {
        if let Some(device) = self.devices.get(&index) {
            let is_leaving = device.state == DeviceState::Leaving;
            return Err(if is_leaving { "IndexLeaving" } else { "IndexInUse" });
        }
        self.incarnations += 1;
        self.devices.insert(
            index,
            Device {
                incarnation: self.incarnations,
                state: DeviceState::Active,
                kernels: Vec::new(),
                reservations: BTreeMap::new(),
                reported: self.total_bytes,
            },
        );
        Ok(())
    }

    pub(crate) fn unregister(&mut self, index: usize) {
        if let Some(device) = self.devices.get_mut(&index) {
            device.state = DeviceState::Leaving;
            device.reservations.clear();
        }
        self.sweep();
    }

    pub(crate) fn set_state(&mut self, index: usize, state: DeviceState) -> Outcome {
        use DeviceState::{Active, Degraded, Lost, Probation, Unresponsive};
        let device = self.devices.get_mut(&index).ok_or("UnknownDevice")?;
        let allowed: &[DeviceState] = match device.state {
            Active | Degraded => &[Active, Degraded, Unresponsive, Lost],
            Unresponsive => &[Unresponsive, Lost, Probation],
            Lost => &[Lost, Probation],
            Probation => &[Probation, Active, Unresponsive, Lost],
            _ => &[],
        };
        if !allowed.contains(&state) {
            return Err("InvalidTransition");
        }
        device.state = state;
        if !matches!(state, Active | Degraded) {
            device.reservations.clear();
        }
        Ok(())
    }

    pub(crate) fn report(&mut self, index: usize, available: u64) -> Outcome {
        let device = self.devices.get_mut(&index).ok_or("UnknownDevice")?;
        if available > self.total_bytes {
            return Err("MemoryExceedsTotal");
        }
        device.reported = available;
        for (_, promise) in &mut device.kernels {
            promise.before_report = true;
        }
        for (_, promise) in device.reservations.values_mut() {
            promise.before_report = true;
        }
        Ok(())
    }

    /// The device that selection should return now.
    pub(crate) fn choice(&self, bytes: u64, preferred: &[usize]) -> Outcome<usize> {
        let fitting = self.devices.iter().filter(|(index, device)| {
            device.state == DeviceState::Active
                && (preferred.is_empty() || preferred.contains(index))
                && self.obstacle(**index, bytes).is_ok()
        });
        let best = fitting.min_by_key(|(index, device)| {
            let figure = match self.strategy {
                LoadBalancingStrategy::FirstAvailable => 0,
                LoadBalancingStrategy::LeastLoaded => device.used() as u64,
                LoadBalancingStrategy::RoundRobin => u64::from(**index < self.turn),
                LoadBalancingStrategy::MemoryBased => 1000 - device.available(self.total_bytes),
                _ => unreachable!("the test does not use it"),
            };
            let by_load = self.strategy == LoadBalancingStrategy::MemoryBased;
            (figure, if by_load { device.used() } else { 0 }, **index)
        });
        best.map(|(&index, _)| index).ok_or("NoDevice")
    }

    pub(crate) fn select(&mut self, bytes: u64, preferred: &[usize]) -> Outcome<usize> {
        let index = self.choice(bytes, preferred)?;
        self.turn = if self.strategy == LoadBalancingStrategy::RoundRobin { index + 1 } else { 0 };
        Ok(index)
    }

    pub(crate) fn place(
        &mut self,
        kernel: KernelId,
        bytes: u64,
        preferred: &[usize],
    ) -> Outcome<usize> {
        if self.device_of(kernel).is_some() {
            return Err("AlreadyPlaced");
        }
        let index = self.select(bytes, preferred)?;
        self.put(kernel, index, Promise { bytes, before_report: false });
        self.launched += 1;
        Ok(index)
    }

    fn put(&mut self, kernel: KernelId, index: usize, promise: Promise) {
        let device = self.devices.get_mut(&index).expect("the device is registered");
        device.kernels.push((kernel, promise));
    }

    fn take(&mut self, kernel: KernelId) -> Promise {
        let index = self.device_of(kernel).expect("the kernel is mapped");
        let device = self.devices.get_mut(&index).expect("the device is registered");
        let position = device.kernels.iter().position(|(other, _)| *other == kernel);
        device.kernels.remove(position.expect("the kernel is on it")).1
    }

    /// Ends the kernel's request, returning its reservation if that was still held.
    fn end_request(&mut self, kernel: KernelId) -> Option<(usize, Promise)> {
        let request = self.requests.remove(&kernel)?;
        let device = self.devices.get_mut(&request.target)?;
        let (_, promise) = device.reservations.remove(&request.id)?;
        Some((request.target, promise))
    }

    pub(crate) fn assign(&mut self, kernel: KernelId, index: usize) -> Outcome {
        if !self.devices.contains_key(&index) {
            return Err("UnknownDevice");
        }
        let Some(from) = self.device_of(kernel) else {
            self.obstacle(index, 0)?;
            self.put(kernel, index, Promise { bytes: 0, before_report: false });
            self.launched += 1;
            return Ok(());
        };
        if from == index {
            return Ok(());
        }
        let reserved = self.requests.get(&kernel).filter(|request| {
            request.target == index && self.devices[&index].reservations.contains_key(&request.id)
        });
        if reserved.is_none() {
            self.obstacle(index, 0)?;
        }
        let is_reserved = reserved.is_some();
        let ended = self.end_request(kernel);
        let bytes = self.take(kernel).bytes;
        let promise = match ended {
            Some((_, promise)) if is_reserved => promise,
            _ => Promise { bytes, before_report: false },
        };
        self.put(kernel, index, promise);
        self.sweep();
        Ok(())
    }

    pub(crate) fn remove(&mut self, kernel: KernelId) -> Outcome {
        if self.device_of(kernel).is_none() {
            return Err("UnknownKernel");
        }
        self.end_request(kernel);
        self.take(kernel);
        self.sweep();
        Ok(())
    }

    /// Whether a request should be granted; [`Model::grant`] records it.
    pub(crate) fn may_request(&self, kernel: KernelId, index: usize) -> Outcome {
        if !self.devices.contains_key(&index) {
            return Err("UnknownDevice");
        }
        let source = self.device_of(kernel).ok_or("UnknownKernel")?;
        if source == index {
            return Err("SameDevice");
        }
        let earlier = self.requests.get(&kernel).filter(|request| request.target == index);
        let is_reserved = |request: &MigrationRequest| {
            self.devices[&index].reservations.contains_key(&request.id)
        };
        if earlier.is_some_and(is_reserved) {
            return Ok(());
        }
        let promises = &self.devices[&source].kernels;
        let bytes = promises.iter().find(|(other, _)| *other == kernel).map(|(_, own)| own.bytes);
        self.obstacle(index, bytes.expect("the kernel is on its device"))
    }

    pub(crate) fn grant(&mut self, request: MigrationRequest) {
        let kernel = request.kernel;
        let source = &self.devices[&request.source].kernels;
        let own = source.iter().find(|(other, _)| *other == kernel).expect("it is on the source");
        let bytes = own.1.bytes;
        let promise = match self.end_request(kernel) {
            Some((target, promise)) if target == request.target => promise,
            _ => Promise { bytes, before_report: false },
        };
        let device = self.devices.get_mut(&request.target).expect("the target is registered");
        device.reservations.insert(request.id, (kernel, promise));
        self.requests.insert(kernel, request);
    }

    fn is_current(&self, request: &MigrationRequest) -> bool {
        self.requests.get(&request.kernel) == Some(request)
            && self
                .devices
                .get(&request.target)
                .is_some_and(|device| device.reservations.contains_key(&request.id))
    }

    pub(crate) fn complete(&mut self, request: &MigrationRequest) -> Outcome {
        if !self.is_current(request) {
            return Err("StaleRequest");
        }
        let (target, promise) = self.end_request(request.kernel).expect("it is current");
        self.take(request.kernel);
        self.put(request.kernel, target, promise);
        self.sweep();
        Ok(())
    }

    pub(crate) fn cancel(&mut self, request: &MigrationRequest) -> Outcome {
        if !self.is_current(request) {
            return Err("StaleRequest");
        }
        self.end_request(request.kernel);
        Ok(())
    }
}
