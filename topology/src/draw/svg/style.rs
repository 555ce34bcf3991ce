//! Colours and lines, for light and dark surroundings.

use crate::{InterconnectType, Quality};

/// The style sheet. Links have a class for their colour and one for their quality. Every colour is
/// written out, since not every program that shows SVG knows custom properties.
pub(super) const STYLE: &str = "\
text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;\
font-size:12px;fill:#1d2329}\n\
.paper{fill:#fff}.title{font-size:18px;font-weight:600}\
.numa{fill:#f3f5f7;stroke:#c9d1d9}.part{fill:#fff;stroke:#c9d1d9}\
.gpu{fill:#e3efe0;stroke:#5b8f52;stroke-width:1.4}.nic{fill:#e6ecf5;stroke:#7f97bd}\
.switch{fill:#e3efe0;stroke:#3d8b2f;stroke-width:1.6}\n\
.head{font-weight:600;fill:#5d6975}.small{font-size:11px;fill:#5d6975}\
.name{font-weight:600;font-size:13px;text-anchor:middle}\
.detail{font-size:10px;fill:#5d6975;text-anchor:middle}\
.chip{font-size:10.5px;text-anchor:middle}.bar{font-weight:600;text-anchor:middle}\
.note{fill:#5d6975}.guess{font-style:italic}\n\
.link{fill:none;stroke-linecap:round}.nvlink{stroke:#3d8b2f}.xgmi{stroke:#c0392b}\
.xe{stroke:#1f6fb2}.tile{stroke:#7d4fa8}.other{stroke:#7a858f}\
.estimated{stroke-linecap:butt;stroke-dasharray:7 4}.unknown{stroke-dasharray:1 6;stroke:#7a858f}\n\
@media (prefers-color-scheme:dark){text{fill:#e6ebf0}.paper{fill:#12161b}\
.numa{fill:#1a2027;stroke:#38424d}.part{fill:#151a20;stroke:#38424d}\
.gpu{fill:#22331f;stroke:#74b069}.nic{fill:#1f2a3a;stroke:#6d89b5}\
.switch{fill:#22331f;stroke:#76c766}.head,.small,.detail,.note{fill:#9aa7b4}\
.nvlink{stroke:#76c766}.xgmi{stroke:#ee7f72}.xe{stroke:#63aee8}.tile{stroke:#b78ee0}\
.other,.unknown{stroke:#93a0ac}}";

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
