//! A machine that answers as a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hopwise_topology::{
    Format, Machine, Observations, PciAddress, PeerCapability, PeerStatus, Reading,
};

use crate::nvml::Nvml;
use crate::nvml::management::{
    Ancestor, Answer, ClockDomain, Clocks, Fault, Instance, Load, Management, Memory, Pcie, Remote,
    Rows, Status,
};

/// One NVLink.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    pub(super) is_up: bool,
    pub(super) version: u32,
    pub(super) remote: Remote,
    pub(super) pci: Option<PciAddress>,
}

/// One GPU. A fault in an answer is the answer.
#[derive(Clone, Debug)]
pub(super) struct Gpu {
    pub(super) is_lost: bool,
    pub(super) pci: PciAddress,
    pub(super) uuid: String,
    pub(super) capability: (u32, u32),
    pub(super) numa_nodes: Vec<u32>,
    /// `None`: the card has no NVLink.
    pub(super) lanes: Option<Vec<Lane>>,
    /// `None`: the card cannot be divided.
    pub(super) is_divided: Option<bool>,
    pub(super) instances: Vec<Option<Instance>>,
    pub(super) pcie: Pcie,
    pub(super) load: Load,
    pub(super) throttle_reasons: Option<u64>,
    pub(super) uncorrected_errors: Option<u64>,
    pub(super) pages_wait: Option<bool>,
    pub(super) rows: Option<Rows>,
}

type Peers = dyn Fn(u32, u32, PeerCapability) -> PeerStatus + Send + Sync;

/// A machine.
#[derive(Clone)]
pub(super) struct Scripted {
    pub(super) gpus: Vec<Gpu>,
    pub(super) ancestor: Option<Ancestor>,
    pub(super) peers: Arc<Peers>,
    /// How GPU 0 refuses all questions but for who it is.
    pub(super) refuses: Option<Status>,
    /// Questions that are still answered before one fails, with how it fails.
    pub(super) fails_after: Option<(Arc<AtomicI64>, Status)>,
}

pub(super) fn pci(bus: u8) -> PciAddress {
    PciAddress { domain: 0, bus, device: 0, function: 0 }
}

/// The address of GPU `index`.
pub(super) fn gpu_pci(index: u32) -> PciAddress {
    pci(0x10 + u8::try_from(index).unwrap())
}

pub(super) fn lane(remote: Remote, pci: Option<PciAddress>) -> Lane {
    Lane { is_up: true, version: 5, remote, pci }
}

fn gpu(index: u32) -> Gpu {
    Gpu {
        is_lost: false,
        pci: gpu_pci(index),
        uuid: format!("GPU-{index:08x}-0000-0000-0000-000000000000"),
        capability: (8, 9),
        numa_nodes: vec![0],
        lanes: None,
        is_divided: None,
        instances: Vec::new(),
        pcie: Pcie {
            generation_now: Some(4),
            lanes_now: Some(16),
            generation_max: Some(4),
            lanes_max: Some(16),
        },
        load: Load { busy_percent: 0, performance_state: Some(8) },
        throttle_reasons: Some(0),
        uncorrected_errors: Some(0),
        pages_wait: None,
        rows: Some(Rows::default()),
    }
}

impl Scripted {
    /// Cards without NVLink on one host bridge, with access to each other over PCIe.
    pub(super) fn new(count: u32) -> Self {
        let peers = |_, _, capability| match capability {
            PeerCapability::NvLink => PeerStatus::NotSupported,
            _ => PeerStatus::Supported,
        };
        Self {
            gpus: (0..count).map(gpu).collect(),
            ancestor: Some(Ancestor::HostBridge),
            peers: Arc::new(peers),
            refuses: None,
            fails_after: None,
        }
    }

    /// The same, with these NVLinks of each GPU, and access over them.
    pub(super) fn with_lanes(mut self, lanes: impl Fn(u32) -> Vec<Lane>) -> Self {
        for (index, gpu) in (0..).zip(&mut self.gpus) {
            gpu.lanes = Some(lanes(index));
        }
        self.with_peers(|_, _, _| PeerStatus::Supported)
    }

    pub(super) fn with_peers(
        mut self,
        peers: impl Fn(u32, u32, PeerCapability) -> PeerStatus + Send + Sync + 'static,
    ) -> Self {
        self.peers = Arc::new(peers);
        self
    }

    pub(super) fn nvml(self) -> Nvml {
        Nvml::on(Box::new(self))
    }

    /// What it says about links, and the machine that follows.
    pub(super) fn observe(self) -> (Observations, Machine) {
        let observations = self.nvml().links();
        let reading = Reading { format: Format::Nvml, observations: observations.clone() };
        (observations, Machine::merge(&[reading]))
    }

    fn ask(&self, call: &'static str, gpu: u32) -> Answer<&Gpu> {
        if let Some((left, status)) = &self.fails_after
            && left.fetch_sub(1, Ordering::SeqCst) == 0
        {
            return Err(Fault { call, status: status.clone() });
        }
        if let (0, Some(status), false) = (gpu, &self.refuses, call == "uuid") {
            return Err(Fault { call, status: status.clone() });
        }
        let gpu = &self.gpus[usize::try_from(gpu).unwrap()];
        if gpu.is_lost { Err(Fault { call, status: Status::Lost }) } else { Ok(gpu) }
    }

    fn lane(&self, call: &'static str, gpu: u32, lane: u32) -> Answer<&Lane> {
        let absent = |status| Fault { call, status };
        let lanes = self.ask(call, gpu)?.lanes.as_ref();
        let lanes = lanes.ok_or_else(|| absent(Status::NotSupported))?;
        lanes.get(usize::try_from(lane).unwrap()).ok_or_else(|| absent(Status::NotFound))
    }
}

fn some<T: Clone>(call: &'static str, value: &Option<T>) -> Answer<T> {
    value.clone().ok_or(Fault { call, status: Status::NotSupported })
}

impl Management for Scripted {
    fn gpu_count(&self) -> Answer<u32> {
        Ok(u32::try_from(self.gpus.len()).unwrap())
    }

    fn uuid(&self, gpu: u32) -> Answer<String> {
        Ok(self.ask("uuid", gpu)?.uuid.clone())
    }

    fn pci(&self, gpu: u32) -> Answer<PciAddress> {
        Ok(self.ask("pci", gpu)?.pci)
    }

    fn name(&self, gpu: u32) -> Answer<String> {
        self.ask("name", gpu).map(|_| "NVIDIA Test".to_owned())
    }

    fn serial(&self, gpu: u32) -> Answer<String> {
        self.ask("serial", gpu)?;
        Err(Fault { call: "serial", status: Status::NotSupported })
    }

    fn compute_capability(&self, gpu: u32) -> Answer<(u32, u32)> {
        Ok(self.ask("capability", gpu)?.capability)
    }

    fn memory(&self, gpu: u32) -> Answer<Memory> {
        self.ask("memory", gpu).map(|_| Memory { total_bytes: 80 << 30, free_bytes: 79 << 30 })
    }

    fn clocks(&self, gpu: u32, _domain: ClockDomain) -> Answer<Clocks> {
        self.ask("clocks", gpu).map(|_| Clocks { now_mhz: 345, max_mhz: 1980 })
    }

    fn numa_nodes(&self, gpu: u32) -> Answer<Vec<u32>> {
        Ok(self.ask("numa", gpu)?.numa_nodes.clone())
    }

    fn is_divided(&self, gpu: u32) -> Answer<bool> {
        some("mig", &self.ask("mig", gpu)?.is_divided)
    }

    fn most_instances(&self, gpu: u32) -> Answer<u32> {
        Ok(u32::try_from(self.ask("instances", gpu)?.instances.len()).unwrap())
    }

    fn instance(&self, gpu: u32, number: u32) -> Answer<Instance> {
        let instance = &self.ask("instance", gpu)?.instances[usize::try_from(number).unwrap()];
        instance.clone().ok_or(Fault { call: "instance", status: Status::NotFound })
    }

    fn pcie(&self, gpu: u32) -> Answer<Pcie> {
        Ok(self.ask("pcie", gpu)?.pcie)
    }

    fn ancestor(&self, gpu: u32, other: u32) -> Answer<Ancestor> {
        self.ask("ancestor", gpu)?;
        self.ask("ancestor", other)?;
        some("ancestor", &self.ancestor)
    }

    fn peer(&self, gpu: u32, other: u32, capability: PeerCapability) -> Answer<PeerStatus> {
        self.ask("peer", gpu)?;
        self.ask("peer", other)?;
        Ok((self.peers)(gpu, other, capability))
    }

    fn lane_is_up(&self, gpu: u32, lane: u32) -> Answer<bool> {
        Ok(self.lane("lane state", gpu, lane)?.is_up)
    }

    fn lane_version(&self, gpu: u32, lane: u32) -> Answer<u32> {
        Ok(self.lane("lane version", gpu, lane)?.version)
    }

    fn lane_remote(&self, gpu: u32, lane: u32) -> Answer<Remote> {
        Ok(self.lane("lane remote", gpu, lane)?.remote)
    }

    fn lane_remote_pci(&self, gpu: u32, lane: u32) -> Answer<Option<PciAddress>> {
        Ok(self.lane("lane pci", gpu, lane)?.pci)
    }

    fn lane_megabytes_per_s(&self, gpu: u32) -> Answer<u32> {
        self.ask("lane speed", gpu)?;
        Err(Fault { call: "lane speed", status: Status::NotSupported })
    }

    fn load(&self, gpu: u32) -> Answer<Load> {
        Ok(self.ask("load", gpu)?.load)
    }

    fn throttle_reasons(&self, gpu: u32) -> Answer<u64> {
        some("throttle", &self.ask("throttle", gpu)?.throttle_reasons)
    }

    fn uncorrected_errors(&self, gpu: u32) -> Answer<u64> {
        some("ecc", &self.ask("ecc", gpu)?.uncorrected_errors)
    }

    fn pages_wait_for_retirement(&self, gpu: u32) -> Answer<bool> {
        some("pages", &self.ask("pages", gpu)?.pages_wait)
    }

    fn rows(&self, gpu: u32) -> Answer<Rows> {
        some("rows", &self.ask("rows", gpu)?.rows)
    }
}
