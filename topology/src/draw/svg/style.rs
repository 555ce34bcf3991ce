//! Colours and lines, for light and dark surroundings.

use crate::{InterconnectType, Quality};

/// The style sheet. Links have a class for their colour and one for their quality.
pub(super) const STYLE: &str = "\
:root{--paper:#fff;--ink:#1d2329;--soft:#5d6975;--box:#f3f5f7;--edge:#c9d1d9;--inner:#fff;\
--gpu:#e3efe0;--gpu-edge:#5b8f52;--nic:#e6ecf5;--nic-edge:#7f97bd;\
--nvlink:#3d8b2f;--xgmi:#c0392b;--xe:#1f6fb2;--tile:#7d4fa8;--other:#7a858f}\n\
@media (prefers-color-scheme:dark){:root{--paper:#12161b;--ink:#e6ebf0;--soft:#9aa7b4;\
--box:#1a2027;--edge:#38424d;--inner:#151a20;--gpu:#22331f;--gpu-edge:#74b069;\
--nic:#1f2a3a;--nic-edge:#6d89b5;--nvlink:#76c766;--xgmi:#ee7f72;--xe:#63aee8;\
--tile:#b78ee0;--other:#93a0ac}}\n\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;\
font-size:12px;fill:var(--ink)}\n\
.paper{fill:var(--paper)}.title{font-size:18px;font-weight:600}\
.numa{fill:var(--box);stroke:var(--edge)}.part{fill:var(--inner);stroke:var(--edge)}\
.gpu{fill:var(--gpu);stroke:var(--gpu-edge);stroke-width:1.4}\
.nic{fill:var(--nic);stroke:var(--nic-edge)}\
.switch{fill:var(--gpu);stroke:var(--nvlink);stroke-width:1.6}\n\
.head{font-weight:600;fill:var(--soft)}.small{font-size:11px;fill:var(--soft)}\
.name{font-weight:600;font-size:13px;text-anchor:middle}\
.detail{font-size:10px;fill:var(--soft);text-anchor:middle}\
.chip{font-size:10.5px;text-anchor:middle}.bar{font-weight:600;text-anchor:middle}\
.note{fill:var(--soft)}.guess{font-style:italic}\n\
.link{fill:none;stroke-linecap:round}.nvlink{stroke:var(--nvlink)}.xgmi{stroke:var(--xgmi)}\
.xe{stroke:var(--xe)}.tile{stroke:var(--tile)}.other{stroke:var(--other)}\
.estimated{stroke-dasharray:7 4}.unknown{stroke-dasharray:1 5;stroke:var(--other)}";

/// The class of a link's colour.
pub(super) const fn colour(kind: InterconnectType) -> &'static str {
    match kind {
        InterconnectType::NvLink { .. }
        | InterconnectType::NvSwitch { .. }
        | InterconnectType::NvLinkC2c => "nvlink",
        InterconnectType::InfinityFabric { .. } => "xgmi",
        InterconnectType::XeLink { .. } | InterconnectType::XeLinkIndirect => "xe",
        InterconnectType::TileFabric => "tile",
        _ => "other",
    }
}

/// The class of a link's quality.
pub(super) const fn quality(quality: Quality) -> &'static str {
    match quality {
        Quality::Unknown => "unknown",
        Quality::Estimated => "estimated",
        Quality::Reported | Quality::Measured => "known",
    }
}

/// The width of a link in pixels, by the number of bonded links.
pub(super) fn width(kind: InterconnectType) -> f64 {
    (1.0 + 0.7 * f64::from(kind.link_count().unwrap_or(1))).min(6.0)
}
