//! What a device is, by its name in the PCI ID database. lspci's tree shows no classes.

use super::ids::{self, Ids};
use crate::NodeKind;

/// What a name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) kind: NodeKind,
    pub(super) model: Option<String>,
}

/// Words in names of functions that are part of a GPU's or network card, but neither.
const OTHER_FUNCTIONS: [&str; 18] = [
    "audio",
    "usb",
    "ucsi",
    "serial",
    "bridge",
    "smbus",
    "sata",
    " ide ",
    "switch",
    "upstream",
    "downstream",
    " port",
    " dma",
    "management",
    "flash recovery",
    "storage",
    "nvme",
    "memory controller",
];

/// Words in names of network interfaces.
const NETWORK: [&str; 16] = [
    "ethernet",
    "network",
    "connectx",
    "bluefield",
    "infiniband",
    "infinihost",
    "omni-path",
    "netxtreme",
    "fastlinq",
    "cassini",
    "slingshot",
    "elastic fabric",
    "gbe",
    " nic",
    "wi-fi",
    "wireless",
];

/// Words in names of Intel's GPUs that are cards. Built-in graphics sit on a root bus.
const INTEL_GPUS: [&str; 9] = [
    "data center gpu",
    "server gpu",
    "ponte vecchio",
    "ats-m",
    "arctic sound",
    "[arc ",
    "battlemage",
    "dg1",
    "dg2",
];

/// AMD's display devices for management controllers.
const AMD_CONSOLES: [&str; 3] = ["es1000", "rage xl", "rn50"];

/// What a device of this name is; `None` if it is of no interest.
///
/// A function other than the first is never a GPU: those are audio and USB, or virtual.
pub(super) fn of(name: &str, function: u8, is_on_root_bus: bool) -> Option<Product> {
    let (name, ids) = ids::split(name);
    let lower = name.to_ascii_lowercase();
    let vendor = Vendor::of(&lower, ids);
    let is_gpu = |yes: bool| yes.then_some(NodeKind::Gpu);
    let is_other = OTHER_FUNCTIONS.iter().any(|word| lower.contains(word));
    let kind = if vendor == Vendor::Nvidia && is_nvswitch(name, &lower, ids) {
        Some(NodeKind::NvSwitch)
    } else if is_other {
        None
    } else if ids::says_nothing(name, ids) {
        by_ids(vendor, ids, function)
    } else {
        match vendor {
            Vendor::Nvidia => is_gpu(function == 0 && is_nvidia_gpu(&lower)),
            Vendor::Amd => {
                let is_console = AMD_CONSOLES.iter().any(|word| lower.contains(word));
                is_gpu(function == 0 && !is_console)
            }
            Vendor::Intel if INTEL_GPUS.iter().any(|word| lower.contains(word)) => {
                is_gpu(function == 0 && !is_on_root_bus)
            }
            Vendor::Mellanox => Some(NodeKind::Nic),
            _ => NETWORK.iter().any(|word| lower.contains(word)).then_some(NodeKind::Nic),
        }
    }?;
    Some(Product { kind, model: model(name, ids, kind) })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    /// The graphics part of AMD, once ATI. Its processors and bridges have another vendor number.
    Amd,
    Intel,
    Mellanox,
    Other,
}

impl Vendor {
    fn of(lower: &str, ids: Option<Ids>) -> Self {
        let by_name = [
            ("nvidia", Self::Nvidia),
            ("ati technologies", Self::Amd),
            ("intel", Self::Intel),
            ("mellanox", Self::Mellanox),
        ];
        if lower.contains("[amd/ati]") {
            return Self::Amd;
        }
        if let Some(&(_, vendor)) = by_name.iter().find(|(name, _)| lower.starts_with(name)) {
            return vendor;
        }
        match ids.and_then(|ids| ids.vendor) {
            Some(0x10de) => Self::Nvidia,
            Some(0x1002) => Self::Amd,
            Some(0x8086) => Self::Intel,
            Some(0x15b3) => Self::Mellanox,
            _ => Self::Other,
        }
    }
}

/// A name that starts with the code of a chip, or has one for the shop in brackets:
/// `GH100 [H100 SXM5 80GB]`.
fn is_nvidia_gpu(lower: &str) -> bool {
    let is_code = |word: &str| {
        let letters = word.bytes().take_while(u8::is_ascii_lowercase).count();
        let digits = word.bytes().skip(letters).take_while(u8::is_ascii_digit).count();
        (1..=2).contains(&letters) && (2..=3).contains(&digits)
    };
    let codes = ["g", "tu", "ad", "nv"];
    let starts = |word: &&str| codes.iter().any(|code| word.starts_with(code)) && is_code(word);
    lower.split_whitespace().any(|word| starts(&word))
}

fn is_nvswitch(name: &str, lower: &str, ids: Option<Ids>) -> bool {
    lower.contains("nvswitch")
        || ids.is_some_and(|ids| ids::is_nvswitch(ids.device)) && ids::says_nothing(name, ids)
}

/// What a device is that the database of that machine did not know yet.
fn by_ids(vendor: Vendor, ids: Option<Ids>, function: u8) -> Option<NodeKind> {
    let device = ids?.device;
    match vendor {
        Vendor::Nvidia if function == 0 && ids::is_nvidia_gpu(device) => Some(NodeKind::Gpu),
        Vendor::Amd if function == 0 && ids::is_amd_gpu(device) => Some(NodeKind::Gpu),
        Vendor::Intel if function == 0 && ids::is_intel_gpu(device) => Some(NodeKind::Gpu),
        Vendor::Mellanox if ids::is_mellanox_nic(device) => Some(NodeKind::Nic),
        Vendor::Nvidia | Vendor::Amd if function == 0 => Some(NodeKind::PciDevice),
        Vendor::Mellanox => Some(NodeKind::PciDevice),
        _ => None,
    }
}

/// A GPU's name in the shop, which stands in brackets; an interface's name; the numbers of a
/// device without a name.
fn model(name: &str, ids: Option<Ids>, kind: NodeKind) -> Option<String> {
    if ids::says_nothing(name, ids) {
        return ids.and_then(Ids::in_full);
    }
    let bracketed = name.strip_suffix(']').and_then(|name| name.rsplit_once('['));
    match bracketed {
        Some((_, shop)) if kind == NodeKind::Gpu => Some(shop.trim().to_owned()),
        _ => Some(name.to_owned()),
    }
}
