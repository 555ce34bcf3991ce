//! Which devices are checked, and which of them are GPUs.

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use hopwise_core::backend::Backend;
use hopwise_core::device_info::{BackendKind, DeviceInfo};

use crate::device_list::{DeviceList, Kind, Wanted, is_gpu};
use crate::failure::Failure;

/// The name that a test's driver gives its devices.
const STAND_IN: &str = "Stand-in";

/// The devices of a check.
#[derive(Debug)]
pub(super) struct Chosen {
    /// Those that were asked for: checked and measured.
    pub(super) asked: DeviceList,
    /// The same with a host device, which the demo and live moves need.
    pub(super) with_host: DeviceList,
}

impl Chosen {
    /// What was named; else every GPU of the CUDA driver, twice where there is only one, since
    /// copies and messages need two.
    ///
    /// # Errors
    ///
    /// [`Failure::Failed`] says what is missing where nothing was named and there is no GPU.
    pub(super) fn new(named: Option<&DeviceList>) -> Result<Self, Failure> {
        let asked = match named {
            Some(named) => named.clone(),
            None => {
                let gpus = CudaBackend::new(CudaOptions::new()).enumerate().map_err(|missing| {
                    Failure::failed(format!(
                        "{missing}; name other devices, as in --devices wgpu:1,host:1"
                    ))
                })?;
                DeviceList(vec![Wanted::from(Kind::Cuda(None)); gpus.len().max(2)])
            }
        };
        let mut with_host = asked.clone();
        if !asked.0.iter().any(|wanted| wanted.kind == Kind::Host) {
            with_host.0.push(Wanted::from(Kind::Host));
        }
        Ok(Self { asked, with_host })
    }

    /// The devices as they are typed, for another process.
    pub(super) fn typed(&self) -> String {
        let each = self.asked.0.iter().map(|wanted| format!("{}:1", wanted.kind));
        each.collect::<Vec<_>>().join(",")
    }
}

/// Why figures of a device are not those of a GPU; `None` for a GPU.
pub(super) fn no_gpu(info: &DeviceInfo) -> Option<String> {
    let name = &info.name;
    match info.backend {
        BackendKind::Cuda if name.contains(STAND_IN) => {
            Some(format!("the driver of `{name}` is a test's stand-in: no GPU"))
        }
        BackendKind::Cuda => None,
        BackendKind::Host => Some(format!("`{name}` is made of this machine's processors")),
        _ => {
            let probe = hopwise_backend_wgpu::probe();
            let mut named = probe.adapters().iter().filter(|adapter| adapter.name == *name);
            let is_gpu = named.any(|adapter| is_gpu(adapter.kind));
            (!is_gpu).then(|| format!("`{name}` is a software driver: no GPU"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stand_in_is_no_gpu_and_a_name_of_nvidia_is_one() {
        let device = |name: &str| DeviceInfo::new(0, name, BackendKind::Cuda);
        assert_eq!(no_gpu(&device("NVIDIA H100 PCIe")), None);
        assert!(no_gpu(&device("Stand-in")).is_some_and(|reason| reason.contains("no GPU")));
        assert!(no_gpu(&DeviceInfo::new(0, "host 0", BackendKind::Host)).is_some());
    }

    #[test]
    fn a_host_device_is_added_where_none_is_named() {
        let list: DeviceList = "cuda:2,wgpu[llvm, pipe]:1".parse().unwrap();
        let chosen = Chosen::new(Some(&list)).unwrap();
        assert_eq!(chosen.typed(), "cuda:1,cuda:1,wgpu[llvm, pipe]:1");
        assert_eq!(chosen.typed().parse::<DeviceList>().unwrap(), chosen.asked);
        assert_eq!(chosen.with_host.0.last().unwrap().kind, Kind::Host);
        let list: DeviceList = "host:1,wgpu:1".parse().unwrap();
        let chosen = Chosen::new(Some(&list)).unwrap();
        assert_eq!(chosen.asked, chosen.with_host);
    }
}
