//! How well a GPU is: sound, degraded, lost, or unknown.

use hopwise_core::health::{Degradation, DegradationKind};

use super::lanes;
use super::management::{Answer, Fault, Management, Status};

/// How well a GPU is, by NVML.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// NVML does not tell: this is neither good nor bad news.
    Unknown {
        /// Why, and the remedy.
        why: String,
    },
    /// It answers, and nothing of what it tells is wrong.
    Sound,
    /// It works worse than it should.
    Degraded(Vec<Degradation>),
    /// It has fallen off the bus, or does nothing until it is reset.
    Lost {
        /// What NVML said, and the remedy.
        cause: String,
    },
}

/// A GPU of which one in ten moments is busy is not idle: its PCIe link is at full speed.
const BUSY_PERCENT: u32 = 10;

/// Performance states of a GPU that works: 0 for most, 2 for GeForce cards that compute.
const SLOWEST_WORKING_STATE: u32 = 2;

/// Bits of NVML's throttle reasons, each with what it is about, what was seen, and the remedy.
///
/// The others are no faults: idleness, limits on clocks that someone set, the power cap, the pace
/// of a boost group. The general bit for a hardware slowdown also shows while clocks change, so
/// the particular ones are asked instead.
const SLOWDOWNS: [(u64, DegradationKind, &str, &str); 3] = [
    (
        0x20,
        DegradationKind::Temperature,
        "the driver lowers the clocks, since the GPU or its memory is too hot",
        "look at nvidia-smi -q -d TEMPERATURE, fans, air flow and the room's temperature",
    ),
    (
        0x40,
        DegradationKind::Temperature,
        "the hardware cuts the clocks to half or less, since the GPU is too hot",
        "look at nvidia-smi -q -d TEMPERATURE, fans, air flow and the room's temperature",
    ),
    (
        0x80,
        DegradationKind::Power,
        "the hardware cuts the clocks to half or less, since the power supply asks for it",
        "look at the power supply, its cables and the chassis's power limit",
    ),
];

/// Asks for everything that tells how well a GPU is.
pub(super) fn condition(nvml: &dyn Management, gpu: u32) -> Condition {
    let mut examination = Examination { nvml, gpu, found: Vec::new(), answers: 0, first: None };
    let questions: [Question<'_>; 5] = [
        |this| this.clocks(),
        |this| this.pcie(),
        |this| this.errors(),
        |this| this.replaced_memory(),
        |this| this.nvlinks(),
    ];
    for question in questions {
        match question(&mut examination) {
            Ok(()) => examination.answers += 1,
            Err(fault) if fault.status.is_loss() => {
                return Condition::Lost { cause: format!("{fault}; {}", fault.status.remedy()) };
            }
            Err(fault) => examination.first = examination.first.or(Some(fault)),
        }
    }
    match (examination.found.is_empty(), examination.answers, examination.first) {
        (false, ..) => Condition::Degraded(examination.found),
        (true, 0, Some(fault)) => {
            Condition::Unknown { why: format!("{fault}; {}", fault.status.remedy()) }
        }
        _ => Condition::Sound,
    }
}

type Question<'a> = fn(&mut Examination<'a>) -> Answer<()>;

struct Examination<'a> {
    nvml: &'a dyn Management,
    gpu: u32,
    found: Vec<Degradation>,
    /// Questions that were answered.
    answers: u32,
    /// The first that was not.
    first: Option<Fault>,
}

impl Examination<'_> {
    fn find(&mut self, kind: DegradationKind, what: impl Into<String>, remedy: &str) {
        self.found.push(Degradation { kind, what: what.into(), remedy: remedy.to_owned() });
    }

    fn clocks(&mut self) -> Answer<()> {
        let reasons = self.nvml.throttle_reasons(self.gpu)?;
        for (bit, kind, what, remedy) in SLOWDOWNS {
            if reasons & bit != 0 {
                self.find(kind, what, remedy);
            }
        }
        Ok(())
    }

    fn pcie(&mut self) -> Answer<()> {
        let pcie = self.nvml.pcie(self.gpu)?;
        if let Some((now, max)) = pcie.lanes_now.zip(pcie.lanes_max).filter(|(now, max)| now < max)
        {
            let what = format!("the PCIe link has {now} of {max} lanes");
            let remedy = "seat the card again, clean its contacts, try another slot or riser";
            self.find(DegradationKind::Pcie, what, remedy);
        }
        let generations = pcie.generation_now.zip(pcie.generation_max);
        // An idle GPU lowers the generation to save power, so it is looked at under load only.
        if let Some((now, max)) = generations.filter(|(now, max)| now < max)
            && self.is_busy()?
        {
            let what = format!("the PCIe link runs at generation {now} of {max} under load");
            let remedy = "look at the kernel's log for PCIe errors and at the slot's setting in \
                          the firmware; seat the card again";
            self.find(DegradationKind::Pcie, what, remedy);
        }
        Ok(())
    }

    fn is_busy(&self) -> Answer<bool> {
        let load = match self.nvml.load(self.gpu) {
            Err(fault) if !fault.status.is_loss() => return Ok(false),
            other => other?,
        };
        let works = load.performance_state.is_none_or(|state| state <= SLOWEST_WORKING_STATE);
        Ok(works && load.busy_percent >= BUSY_PERCENT)
    }

    fn errors(&mut self) -> Answer<()> {
        let errors = self.nvml.uncorrected_errors(self.gpu)?;
        if errors > 0 {
            let what = format!(
                "{errors} memory errors could not be corrected since the driver was loaded"
            );
            let remedy = "drain the device and reset the GPU; if they come again, have the card \
                          replaced";
            self.find(DegradationKind::Memory, what, remedy);
        }
        Ok(())
    }

    /// GPUs up to Volta retire pages, later ones replace rows: each knows one of the two.
    fn replaced_memory(&mut self) -> Answer<()> {
        let rows = match self.nvml.rows(self.gpu) {
            Ok(rows) => rows,
            Err(fault) if is_absent(&fault) => return self.retired_pages(),
            Err(fault) => return Err(fault),
        };
        if rows.has_failed {
            let what = "a row of memory could not be replaced: there is no spare one left";
            self.find(DegradationKind::Memory, what, "have the card replaced");
        }
        if rows.is_pending {
            let what = format!(
                "rows of memory wait to be replaced; {} were replaced so far after errors that \
                 could not be corrected",
                rows.after_uncorrected
            );
            self.find(DegradationKind::Memory, what, "drain the device and reset the GPU");
        }
        Ok(())
    }

    fn retired_pages(&mut self) -> Answer<()> {
        if self.nvml.pages_wait_for_retirement(self.gpu)? {
            let what = "pages of memory wait to be retired";
            let remedy = "drain the device and reload the driver, or restart the machine";
            self.find(DegradationKind::Memory, what, remedy);
        }
        Ok(())
    }

    /// A card without NVLink, or without bridges, has no lane that is up, and nothing to degrade.
    fn nvlinks(&mut self) -> Answer<()> {
        let states = lanes::states(self.nvml, self.gpu)?;
        if !states.up.is_empty() && !states.down.is_empty() {
            let numbers: Vec<String> = states.down.iter().map(ToString::to_string).collect();
            let (down, all) = (states.down.len(), states.down.len() + states.up.len());
            let what = format!("{down} of {all} NVLinks are down: {}", numbers.join(", "));
            let remedy = "look at nvidia-smi nvlink -s and -e, reset the GPUs, seat the bridges \
                          again; nothing to do where fewer bridges are fitted than have room";
            self.find(DegradationKind::Fabric, what, remedy);
        }
        Ok(())
    }
}

fn is_absent(fault: &Fault) -> bool {
    matches!(fault.status, Status::NotSupported | Status::NotFound | Status::NoFunction)
}
