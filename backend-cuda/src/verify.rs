//! Whether peer copies do what the driver promises: drivers have been seen to grant access that the
//! bus does not keep, so that writes were lost, or the machine hung.
//!
//! The check writes a pattern, copies it and reads it back. It can hang the GPU, and has made whole
//! machines hang: so it is made only when it is asked for, for one ordered pair in a process of its
//! own, which is given up after a time limit. What it finds can only forbid
//! ([`CudaOptions::with_forbidden_peers`](crate::CudaOptions::with_forbidden_peers)); what the driver
//! refuses it does not allow.

use std::fmt;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use hopwise_core::device::{Device, InitialState, InstanceRequest, KernelInstance, PeerCopy};
use hopwise_core::programs::counter;

use crate::backend::CudaBackend;
use crate::device::CudaDevice;
use crate::options::{CudaOptions, GpuFilter};

/// Sizes that are copied: within a page, and over many pages and more than one engine's buffer.
const SIZES_BYTES: [u64; 2] = [4 << 10, 8 << 20];

/// How often a parent looks whether its child has ended.
const PAUSE: Duration = Duration::from_millis(10);

/// Begins the line in which a child tells its verdict.
const VERDICT: &str = "peer-verdict: ";

/// What came of checking one ordered pair.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerVerdict {
    /// What was written arrived.
    Sound,
    /// The copies claimed success, and something else arrived.
    Wrong {
        /// Words that differ, of the first size at which any did.
        words: u64,
    },
    /// The driver offers no direct access.
    NotOffered,
    /// A call failed.
    Failed {
        /// The driver's words.
        reason: String,
    },
    /// The process that made the check did not end within the limit.
    Hung,
    /// The process ended without a verdict.
    Died {
        /// How it ended.
        status: String,
    },
}

impl PeerVerdict {
    /// Whether the pair must not be used: what it says is worse than that there is no access.
    #[must_use]
    pub fn forbids(&self) -> bool {
        !matches!(self, Self::Sound | Self::NotOffered)
    }

    /// What usually helps; `None` where nothing is wrong.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        self.forbids().then_some(
            "PCIe access control (ACS) or an IOMMU can redirect or drop such writes: switch ACS off \
             at the root ports or boot with iommu=pt, and check again; until then keep the pair \
             apart",
        )
    }
}

impl fmt::Display for PeerVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => f.write_str("sound"),
            Self::Wrong { words } => write!(f, "wrong: {words} words differ"),
            Self::NotOffered => f.write_str("not offered"),
            Self::Failed { reason } => write!(f, "failed: {reason}"),
            Self::Hung => f.write_str("hung"),
            Self::Died { status } => write!(f, "died: {status}"),
        }
    }
}

impl FromStr for PeerVerdict {
    type Err = ();

    /// Reads what is displayed.
    fn from_str(text: &str) -> Result<Self, ()> {
        let wrong =
            text.strip_prefix("wrong: ").and_then(|rest| rest.strip_suffix(" words differ"));
        Ok(match (text, wrong) {
            ("sound", _) => Self::Sound,
            ("not offered", _) => Self::NotOffered,
            ("hung", _) => Self::Hung,
            (_, Some(words)) => Self::Wrong { words: words.parse().map_err(drop)? },
            _ => match text.split_once(": ").ok_or(())? {
                ("failed", reason) => Self::Failed { reason: reason.to_owned() },
                ("died", status) => Self::Died { status: status.to_owned() },
                _ => return Err(()),
            },
        })
    }
}

/// Checks one ordered pair in this process, by UUID. May hang.
#[must_use]
pub fn verify_pair(libraries: &crate::Libraries, from: &str, to: &str) -> PeerVerdict {
    let checked = open(libraries, from).and_then(|from| Ok((from, open(libraries, to)?)));
    let failed = |reason: String| PeerVerdict::Failed { reason: reason.replace('\n', " ") };
    match checked {
        Ok((from, to)) if !from.reaches_directly(&to) => PeerVerdict::NotOffered,
        Ok((from, to)) => copies(&from, &to).unwrap_or_else(failed),
        Err(reason) => failed(reason),
    }
}

/// Prints a verdict as the line that [`verify_pair_in_child`] reads.
#[must_use]
pub fn verdict_line(verdict: &PeerVerdict) -> String {
    format!("{VERDICT}{verdict}")
}

/// Runs a command that prints the [line](verdict_line) of [`verify_pair`], and gives it up after
/// `limit`: its process is killed then, and if that cannot be done, left behind.
///
/// # Errors
///
/// The system's, when the command cannot be started.
pub fn verify_pair_in_child(mut command: Command, limit: Duration) -> std::io::Result<PeerVerdict> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        // What came before an error is all that there is.
        let _ = stdout.as_mut().map(|stdout| stdout.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let Some(status) = wait(&mut child, limit)? else {
        // A process in an endless call of a driver may not die; nobody waits for it.
        let _ = child.kill();
        return Ok(PeerVerdict::Hung);
    };
    let text = reader.join().unwrap_or_default();
    let verdict = text.lines().find_map(|line| line.strip_prefix(VERDICT)?.parse().ok());
    Ok(verdict.unwrap_or(PeerVerdict::Died { status }))
}

/// How the child ended; `None` if it did not within the limit.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<String>> {
    let started = Instant::now();
    while started.elapsed() < limit {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status.to_string()));
        }
        thread::sleep(PAUSE);
    }
    Ok(None)
}

fn open(libraries: &crate::Libraries, uuid: &str) -> Result<std::sync::Arc<CudaDevice>, String> {
    let options = CudaOptions::new().with_gpu(GpuFilter::Uuid(uuid.to_owned()));
    let backend = CudaBackend::with_libraries(options, libraries);
    backend.open_cuda(0).map_err(|error| error.to_string())
}

/// Copies two patterns of each size, so that what an earlier copy left cannot pass for a new one.
fn copies(from: &CudaDevice, to: &CudaDevice) -> Result<PeerVerdict, String> {
    for bytes in SIZES_BYTES {
        let [source, target] = [instance(from, bytes)?, instance(to, bytes)?];
        for seed in [0x9e37_79b9, 0x85eb_ca6b_u32] {
            let pattern: Vec<u8> = (0..u32::try_from(bytes / 4).expect("a size is small"))
                .flat_map(|word| word.wrapping_mul(seed).to_le_bytes())
                .collect();
            let text = |error: hopwise_core::error::TransferError| error.to_string();
            source.write_state(0, &pattern).map_err(text)?;
            from.copy_state(&*source, &*target, 0, bytes).map_err(text)?;
            let mut found = vec![0; pattern.len()];
            target.read_state(0, &mut found).map_err(text)?;
            let differ = pattern.chunks_exact(4).zip(found.chunks_exact(4));
            let words = differ.filter(|(written, found)| written != found).count() as u64;
            if words > 0 {
                return Ok(PeerVerdict::Wrong { words });
            }
        }
    }
    Ok(PeerVerdict::Sound)
}

/// State of so many bytes: a counter can have any size.
fn instance(
    device: &CudaDevice,
    state_bytes: u64,
) -> Result<std::sync::Arc<dyn KernelInstance>, String> {
    let compiled = device.compile(&counter()).map_err(|error| error.to_string())?;
    let request = InstanceRequest { parameters: &[], state_bytes, initial: InitialState::Zeroed };
    device.create_instance(&compiled, &request).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_as_they_are_printed() {
        let verdicts = [
            PeerVerdict::Sound,
            PeerVerdict::Wrong { words: 12 },
            PeerVerdict::NotOffered,
            PeerVerdict::Failed { reason: "cuX: error 1; do: something".to_owned() },
            PeerVerdict::Hung,
            PeerVerdict::Died { status: "signal: 9".to_owned() },
        ];
        for verdict in verdicts {
            assert_eq!(verdict.to_string().parse(), Ok(verdict.clone()));
            assert_eq!(verdict.forbids(), verdict.remedy().is_some());
        }
        assert_eq!("something".parse::<PeerVerdict>(), Err(()));
    }
}
