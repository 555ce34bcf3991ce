//! Devices as they are written on a command line: `host:3`.

use std::str::FromStr;

use hopwise_core::host::{HostBackend, HostOptions};

#[cfg(test)]
mod tests;

/// Most devices of one run. Each host device has a thread or more.
pub(crate) const MOST_DEVICES: usize = 256;

/// The kinds of device that a run can be made of.
pub(crate) const KINDS: &str = "host";

/// How many devices of which kind: so far all are threads of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceList {
    host_devices: usize,
}

impl DeviceList {
    /// Number of devices.
    pub(crate) fn len(&self) -> usize {
        self.host_devices
    }

    /// The backend that has them.
    pub(crate) fn host_backend(&self) -> HostBackend {
        HostBackend::new(HostOptions::new(self.host_devices))
    }
}

impl FromStr for DeviceList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut host_devices = 0;
        for group in text.split(',') {
            let Some((kind, count)) = group.trim().split_once(':') else {
                return Err(format!("`{group}` is not KIND:COUNT, as in host:3"));
            };
            if kind != KINDS {
                return Err(format!("no devices of kind `{kind}` can be run on; allowed: {KINDS}"));
            }
            let count = count.parse().ok().filter(|count| (1..=MOST_DEVICES).contains(count));
            host_devices += count.ok_or_else(|| {
                format!("the count in `{group}` must be a whole number from 1 to {MOST_DEVICES}")
            })?;
        }
        if host_devices > MOST_DEVICES {
            return Err(format!("{host_devices} devices; at most {MOST_DEVICES} are allowed"));
        }
        Ok(Self { host_devices })
    }
}
