//! What machines print, read: one module a source, each a pure function from text or a file tree
//! to [`Observations`].
//!
//! A reader never fails on a strange line: it warns, leaves the line out and goes on. It fails
//! only if there is nothing to read.

use std::fmt;

use crate::Observations;

pub use file_tree::{Entry, FileTree, FileTreeError};
pub use input::{ReadError, read_bytes, read_path};

mod amd_matrix;
mod claims;
mod fact;
mod file_tree;
mod input;
mod located_json;
mod matrix_text;
mod pci_tree;
mod text;
mod tool_message;
mod xml;

mod amd_smi;
mod hwloc;
mod json;
mod kfd;
mod lspci;
mod nccl;
mod nvidia_smi;
mod rocm_smi;
mod sysfs;
mod taccl;
mod xpu_smi;

/// Which source a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Our own JSON: a machine, or a topology of devices.
    Json,
    /// `nvidia-smi topo -m`.
    NvidiaSmiTopo,
    /// `nvidia-smi topo -p2p r|w|n|a|p`.
    NvidiaSmiPeer,
    /// `nvidia-smi nvlink -s`.
    NvidiaSmiNvlink,
    /// An NCCL or RCCL topology, or an NCCL graph dump, in XML.
    NcclXml,
    /// `rocm-smi --showtopo`, as text or JSON.
    RocmSmi,
    /// `amd-smi topology`, as text or JSON.
    AmdSmi,
    /// AMD's kernel driver: `/sys/class/kfd/kfd/topology`.
    Kfd,
    /// hwloc's XML, 1.x to 3.0.
    HwlocXml,
    /// The PCI tree under a sysfs root.
    Sysfs,
    /// `lspci -tv`.
    Lspci,
    /// `xpu-smi topology`.
    XpuSmi,
    /// TACCL's and MSCCL's profiles of a machine, in JSON.
    Msccl,
    /// NVIDIA's management library; never read from a text.
    Nvml,
    /// What a driver says when it is asked; never read from a text.
    Driver,
    /// What was measured on this machine; never read from a text.
    Measurement,
}

impl Format {
    /// All formats that can be read.
    pub const ALL: [Self; 13] = [
        Self::Json,
        Self::NvidiaSmiTopo,
        Self::NvidiaSmiPeer,
        Self::NvidiaSmiNvlink,
        Self::NcclXml,
        Self::RocmSmi,
        Self::AmdSmi,
        Self::Kfd,
        Self::HwlocXml,
        Self::Sysfs,
        Self::Lspci,
        Self::XpuSmi,
        Self::Msccl,
    ];

    /// Its name in commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::NvidiaSmiTopo => "nvidia-smi-topo",
            Self::NvidiaSmiPeer => "nvidia-smi-p2p",
            Self::NvidiaSmiNvlink => "nvidia-smi-nvlink",
            Self::NcclXml => "nccl-xml",
            Self::RocmSmi => "rocm-smi",
            Self::AmdSmi => "amd-smi",
            Self::Kfd => "kfd",
            Self::HwlocXml => "hwloc-xml",
            Self::Sysfs => "sysfs",
            Self::Lspci => "lspci",
            Self::XpuSmi => "xpu-smi",
            Self::Msccl => "msccl",
            Self::Nvml => "nvml",
            Self::Driver => "driver",
            Self::Measurement => "measurement",
        }
    }

    /// Whether a text looks like this format.
    fn recognizes(self, text: &str) -> bool {
        match self {
            Self::Json => json::recognizes(text),
            Self::NvidiaSmiTopo => nvidia_smi::topo::recognizes(text),
            Self::NvidiaSmiPeer => nvidia_smi::peer::recognizes(text),
            Self::NvidiaSmiNvlink => nvidia_smi::nvlink::recognizes(text),
            Self::NcclXml => nccl::recognizes(text),
            Self::RocmSmi => rocm_smi::recognizes(text),
            Self::AmdSmi => amd_smi::recognizes(text),
            Self::Kfd => kfd::recognizes(text),
            Self::HwlocXml => hwloc::recognizes(text),
            Self::Sysfs | Self::Nvml | Self::Driver | Self::Measurement => false, // no texts
            Self::Lspci => lspci::recognizes(text),
            Self::XpuSmi => xpu_smi::recognizes(text),
            Self::Msccl => taccl::recognizes(text),
        }
    }

    fn read_text(self, text: &str) -> Result<Observations, SourceError> {
        match self {
            Self::Json => json::read(text),
            Self::NvidiaSmiTopo => nvidia_smi::topo::read(text),
            Self::NvidiaSmiPeer => nvidia_smi::peer::read(text),
            Self::NvidiaSmiNvlink => nvidia_smi::nvlink::read(text),
            Self::NcclXml => nccl::read(text),
            Self::RocmSmi => rocm_smi::read(text),
            Self::AmdSmi => amd_smi::read(text),
            Self::Kfd => kfd::read_text(text),
            Self::HwlocXml => hwloc::read(text),
            Self::Sysfs => {
                let reason = "sysfs is a directory, not a text; give its root";
                Err(SourceError::new(self, None, reason))
            }
            Self::Nvml | Self::Driver => {
                Err(SourceError::new(self, None, "drivers are asked, not read; give a text"))
            }
            Self::Measurement => {
                let reason = "measurements are made, not read; give a text";
                Err(SourceError::new(self, None, reason))
            }
            Self::Lspci => lspci::read(text),
            Self::XpuSmi => xpu_smi::read(text),
            Self::Msccl => taccl::read(text),
        }
    }
}

/// Its [`name`](Format::name).
impl fmt::Display for Format {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// A text or file tree holds nothing that can be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{reason}", prefix(*.format), place(*.line))]
pub struct SourceError {
    format: Option<Format>,
    line: Option<usize>,
    reason: String,
}

fn prefix(format: Option<Format>) -> String {
    format.map(|format| format!("{format}: ")).unwrap_or_default()
}

fn place(line: Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

impl SourceError {
    /// `reason` says what is wrong and the remedy.
    pub(crate) fn new(
        format: impl Into<Option<Format>>,
        line: impl Into<Option<usize>>,
        reason: impl Into<String>,
    ) -> Self {
        Self { format: format.into(), line: line.into(), reason: reason.into() }
    }

    /// Where it went wrong, from 1, if that is one place.
    pub const fn line(&self) -> Option<usize> {
        self.line
    }
}

/// What one format of a text says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Which format it was read as.
    pub format: Format,
    /// What it says.
    pub observations: Observations,
}

/// Reads a text by what it looks like, or as `format` says.
///
/// People paste several commands at once: a text gives one reading for each format that it holds.
///
/// # Errors
/// [`SourceError`] if there is nothing to read in it.
pub fn read_text(text: &str, format: Option<Format>) -> Result<Vec<Reading>, SourceError> {
    if let Some(format) = format {
        return Ok(vec![Reading { format, observations: format.read_text(text)? }]);
    }
    let formats: Vec<Format> =
        Format::ALL.into_iter().filter(|format| format.recognizes(text)).collect();
    let mut readings = Vec::new();
    let mut first_error = None;
    for format in formats {
        match format.read_text(text) {
            Ok(observations) => readings.push(Reading { format, observations }),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    match (readings.is_empty(), first_error) {
        (false, _) => Ok(readings),
        (true, Some(error)) => Err(error),
        (true, None) => Err(SourceError::new(None, None, unrecognized(text))),
    }
}

fn unrecognized(text: &str) -> String {
    let names: Vec<_> = Format::ALL.iter().map(|format| format.name()).collect();
    let shown: String = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("")
        .chars()
        .take(80)
        .collect();
    if shown.is_empty() {
        return "the text is empty; give the output of a topology tool".to_owned();
    }
    format!(
        "no topology found in a text that begins with `{shown}`; give the output of a topology \
         tool, or name its format, one of: {}",
        names.join(", ")
    )
}

/// Reads a file tree: a recorded or live sysfs, AMD's kernel driver's topology, or both.
///
/// # Errors
/// [`SourceError`] if there is nothing to read in it.
pub fn read_tree(tree: &FileTree, format: Option<Format>) -> Result<Vec<Reading>, SourceError> {
    let mut readings = Vec::new();
    let wanted = |which| format.is_none_or(|format| format == which);
    if wanted(Format::Kfd) && kfd::is_in(tree) {
        readings.push(Reading { format: Format::Kfd, observations: kfd::read_tree(tree)? });
    }
    if wanted(Format::Sysfs) && sysfs::is_in(tree) {
        readings.push(Reading { format: Format::Sysfs, observations: sysfs::read_tree(tree)? });
    }
    if readings.is_empty() {
        return Err(SourceError::new(
            format,
            None,
            "the directory holds neither a PCI tree (devices/pci*) nor AMD's topology \
             (nodes/*/properties); give the root of a sysfs, or /sys/class/kfd/kfd/topology",
        ));
    }
    Ok(readings)
}

/// Whether [`read_tree`] reads an entry of a directory.
pub(crate) fn wanted_in_sysfs(entry: Entry<'_>) -> bool {
    match entry {
        Entry::File(path) => kfd::is_wanted(path) || sysfs::is_wanted(path),
        Entry::Directory(path) => sysfs::is_wanted_directory(path),
    }
}
