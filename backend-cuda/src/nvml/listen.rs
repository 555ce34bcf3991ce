//! Listening to NVML's events, with a set of its own for each GPU.
//!
//! The wrapper frees a set to which a GPU could not be added, so one set for all GPUs would make
//! every GPU unheard because of one.

use nvml_wrapper::Nvml;

use super::events::{EventSource, EventWatcher, RawEvent};
use super::management::{Answer, Fault, Status};

/// Listens to GPUs, given by index and UUID.
pub(super) fn listen(library: Option<&'static Nvml>, gpus: Vec<(u32, String)>) -> EventWatcher {
    let mut sets = Sets { by_gpu: Vec::new() };
    let (mut heard, mut unheard) = (Vec::new(), Vec::new());
    for (index, uuid) in gpus {
        match library.ok_or(NONE).and_then(|library| sets.add(library, index)) {
            Ok(()) => heard.push((index, uuid)),
            Err(fault) => unheard.push((uuid, format!("{fault}; {}", fault.status.remedy()))),
        }
    }
    let mut watcher = EventWatcher::new(Box::new(sets), heard);
    for (uuid, why) in unheard {
        watcher.give_up(uuid, why);
    }
    watcher
}

const NONE: Fault = Fault { call: "nvmlEventSetCreate", status: Status::NotSupported };

/// Sets of events by the GPU's index.
struct Sets {
    #[cfg(target_os = "linux")]
    by_gpu: Vec<(u32, nvml_wrapper::EventSet<'static>)>,
    #[cfg(not(target_os = "linux"))]
    by_gpu: Vec<(u32, std::convert::Infallible)>,
}

#[cfg(target_os = "linux")]
impl Sets {
    fn add(&mut self, library: &'static Nvml, gpu: u32) -> Answer<()> {
        use nvml_wrapper::bitmasks::event::EventTypes;

        use super::real::{Real, fault};

        // Dropping a set calls this function, and the wrapper panics if it is not there.
        if library.lib().nvmlEventSetFree.is_err() {
            return Err(Fault { call: "nvmlEventSetFree", status: Status::NoFunction });
        }
        let device = Real(library).device(gpu)?;
        let supported =
            device.supported_event_types().map_err(fault("nvmlDeviceGetSupportedEventTypes"))?;
        let wanted = supported
            & (EventTypes::CRITICAL_XID_ERROR
                | EventTypes::SINGLE_BIT_ECC_ERROR
                | EventTypes::DOUBLE_BIT_ECC_ERROR);
        if wanted.is_empty() {
            let call = "nvmlDeviceGetSupportedEventTypes";
            return Err(Fault { call, status: Status::NotSupported });
        }
        let set = library.create_event_set().map_err(fault("nvmlEventSetCreate"))?;
        let set = device
            .register_events(wanted, set)
            .map_err(|error| fault("nvmlDeviceRegisterEvents")(error.error))?;
        self.by_gpu.push((gpu, set));
        Ok(())
    }
}

#[cfg(target_os = "linux")]
impl EventSource for Sets {
    fn next(&mut self, gpu: u32) -> Answer<RawEvent> {
        use nvml_wrapper::bitmasks::event::EventTypes;
        use nvml_wrapper::enums::event::XidError;

        use super::real::fault;

        /// NVML's number for an Xid that it does not know.
        const UNKNOWN_XID: u64 = 999;

        let set = self.by_gpu.iter().find(|(of, _)| *of == gpu).map(|(_, set)| set).ok_or(NONE)?;
        let event = set.wait(0).map_err(fault("nvmlEventSetWait"))?;
        Ok(match event.event_data {
            Some(XidError::Value(number)) => RawEvent::Xid(number),
            Some(XidError::Unknown) => RawEvent::Xid(UNKNOWN_XID),
            None if event.event_type.contains(EventTypes::DOUBLE_BIT_ECC_ERROR) => {
                RawEvent::Uncorrected
            }
            None if event.event_type.contains(EventTypes::SINGLE_BIT_ECC_ERROR) => {
                RawEvent::Corrected
            }
            None => RawEvent::Other,
        })
    }
}

/// NVML has events on Linux only.
#[cfg(not(target_os = "linux"))]
impl Sets {
    #[expect(clippy::unused_self, reason = "as on Linux")]
    fn add(&mut self, _library: &'static Nvml, _gpu: u32) -> Answer<()> {
        Err(NONE)
    }
}

#[cfg(not(target_os = "linux"))]
impl EventSource for Sets {
    fn next(&mut self, _gpu: u32) -> Answer<RawEvent> {
        Err(NONE)
    }
}
