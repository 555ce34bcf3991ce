//! What the elements in a GPU say about its links.

use super::super::xml::Element;
use super::attributes::{class, decimal, number, warn_of_value};
use crate::Observations;

/// What the file says about the links of a GPU or switch.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    /// Links to GPUs, NVSwitches and CPUs: NVLink, or xGMI of AMD's GPUs.
    pub(super) links: Vec<Claim>,
    /// Whether the list is as it was written: no element was cut, and none cannot be read.
    pub(super) is_complete: bool,
    /// GB/s of the coherent link to the CPU; the inner is missing if it is not stated.
    pub(super) to_cpu: Option<Option<f64>>,
    /// Switches of the same chip, by address.
    pub(super) same_chip: Vec<String>,
    /// Compute capability of an NVIDIA GPU: 90 is 9.0.
    pub(super) compute_capability: Option<u32>,
    /// Architecture of an AMD GPU.
    gfx: Option<String>,
    pub(super) is_amd: bool,
}

/// One `<nvlink>` or `<xgmi>`.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// In lower case. Not every target is an address.
    pub(super) target: String,
    pub(super) count: u16,
    /// The PCI class of the target.
    pub(super) class: Option<String>,
    pub(super) line: usize,
}

impl Claims {
    /// Those of `gpu` on `card`.
    pub(super) fn of_gpu(
        card: &Element,
        gpu: &Element,
        is_rccl: bool,
        observed: &mut Observations,
    ) -> Self {
        let has = |attribute: &str| gpu.attribute(attribute).is_some();
        let is_amd = is_rccl || has("gcn") || has("arch") || is_of_amd(card) || is_of_amd(gpu);
        let compute_capability = number(gpu, "sm", observed).filter(|_| !is_amd);
        let gfx = gpu.attribute("gcn").and_then(gfx);
        if is_amd && gfx.is_none() && has("gcn") {
            warn_of_value(gpu, "gcn", "no known architecture", observed);
        }
        let mut claims = Self {
            is_complete: gpu.closed && !gpu.doubtful,
            compute_capability,
            gfx,
            is_amd,
            ..Self::default()
        };
        claims.add_all(gpu, observed);
        if !std::ptr::eq(card, gpu) {
            claims.add_all(card, observed);
        }
        claims
    }

    /// Those of a card without a `<gpu>`: newer versions of RCCL write links there too.
    pub(super) fn of_card(card: &Element, observed: &mut Observations) -> Option<Self> {
        let mut claims = Self {
            is_complete: card.closed && !card.doubtful,
            is_amd: is_of_amd(card),
            ..Self::default()
        };
        claims.add_all(card, observed);
        (!claims.links.is_empty() || claims.to_cpu.is_some()).then_some(claims)
    }

    /// Those of a switch.
    pub(super) fn of_switch(switch: &Element) -> Option<Self> {
        let targets = switch.children_named("pcilink").filter_map(|link| link.attribute("target"));
        let same_chip: Vec<String> = targets.map(str::to_owned).collect();
        (!same_chip.is_empty()).then(|| Self { same_chip, ..Self::default() })
    }

    fn add_all(&mut self, element: &Element, observed: &mut Observations) {
        for child in &element.children {
            match child.name.as_str() {
                "nvlink" | "xgmi" => self.add(child, observed),
                "c2c" => self.add_to_cpu(child, observed),
                _ => {}
            }
        }
    }

    fn add(&mut self, link: &Element, observed: &mut Observations) {
        // What stands in a link was behind it, and its end was lost.
        self.is_complete &= link.closed && link.children.is_empty();
        let count: Option<u16> = number(link, "count", observed);
        let (Some(target), Some(count)) = (link.attribute("target"), count) else {
            let text = format!("this <{}> lacks its target or count; it is left out", link.name);
            observed.warn(link.line, text);
            self.is_complete = false;
            return;
        };
        if count == 0 {
            observed.warn(link.line, "a bundle of 0 links is left out");
            return;
        }
        self.links.push(Claim {
            target: target.trim().to_ascii_lowercase(),
            count,
            class: class(link, "tclass", observed),
            line: link.line,
        });
    }

    fn add_to_cpu(&mut self, link: &Element, observed: &mut Observations) {
        let megabytes_per_s = decimal(link, "bw", observed);
        let count: Option<u16> = number(link, "count", observed);
        let gb_per_s =
            megabytes_per_s.zip(count).map(|(each, count)| each * f64::from(count) / 1000.0);
        if count == Some(0) {
            return;
        }
        if self.to_cpu.is_some_and(|known| known != gb_per_s) {
            observed.warn(link.line, "two <c2c> of one GPU differ; its bandwidth is unknown");
            self.to_cpu = Some(None);
        } else {
            self.to_cpu = Some(gb_per_s);
        }
    }

    /// Whether another reading of the same element gives the same.
    pub(super) fn say_the_same(&self, other: &Self) -> bool {
        let said = |claims: &Self| {
            let links = claims.links.iter();
            links.map(|link| (link.target.clone(), link.count)).collect::<Vec<_>>()
        };
        said(self) == said(other)
            && self.to_cpu == other.to_cpu
            && self.compute_capability == other.compute_capability
    }
}

/// The architecture as its maker writes it: `sm90`, `gfx90a`.
pub(super) fn architecture(claims: &Option<Claims>) -> Option<String> {
    let claims = claims.as_ref()?;
    let sm = || claims.compute_capability.map(|capability| format!("sm{capability}"));
    claims.gfx.clone().or_else(sm)
}

/// Whether it is AMD's, by its vendor or by its kind of links.
fn is_of_amd(card: &Element) -> bool {
    let vendor = card.attribute("vendor").unwrap_or("").to_ascii_lowercase();
    vendor == "0x1002" || card.children_named("xgmi").next().is_some()
}

/// `gfx908` by `908`, as old versions of RCCL write it, and by `gfx908:sramecc+`. They write 910
/// for gfx90a, which HIP numbers so.
fn gfx(text: &str) -> Option<String> {
    let name = text.split(':').next().unwrap_or("").trim().to_ascii_lowercase();
    let digits = name.strip_prefix("gfx").unwrap_or(&name);
    let is_number = matches!(digits.len(), 3..=4) && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match digits {
        "910" => Some("gfx90a".to_owned()),
        _ => is_number.then(|| format!("gfx{digits}")),
    }
}
