//! What a driver must offer as a whole: list devices, open one, tell which links it knows.

use std::fmt;
use std::sync::Arc;

use hopwise_topology::GpuConnection;

use crate::device::Device;
use crate::device_info::{BackendKind, DeviceInfo};
use crate::error::DeviceError;

/// A family of devices behind one driver interface.
pub trait Backend: Send + Sync + fmt::Debug {
    /// Which interface.
    fn kind(&self) -> BackendKind;

    /// The devices that can be opened. `index` of each is its ordinal in this list; identities
    /// tell which device it really is.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`] names what is missing and the remedy.
    fn enumerate(&self) -> Result<Vec<DeviceInfo>, DeviceError>;

    /// Opens the device with this ordinal. Opening one twice gives two logical devices, one
    /// failure domain.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unavailable`] when there is no such device, or the driver's error.
    fn open(&self, ordinal: usize) -> Result<Arc<dyn Device>, DeviceError>;

    /// Links between the listed devices that the driver itself knows, by ordinal.
    /// An empty list means that it knows none, not that there are none.
    ///
    /// # Errors
    ///
    /// The driver's.
    fn links(&self) -> Result<Vec<GpuConnection>, DeviceError>;
}
