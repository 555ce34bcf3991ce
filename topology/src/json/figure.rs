//! A figure in JSON: a value, and exactly one field that says where it comes from.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::object;
use crate::{Figure, Provenance};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FigureEntry {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    measured_at_unix_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reported_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_by: Option<String>,
}

pub(crate) fn serialize<S: Serializer>(figure: &Figure, serializer: S) -> Result<S::Ok, S::Error> {
    let value = figure
        .value()
        .ok_or_else(|| ser::Error::custom("an unknown figure is left out, not written"))?;
    let mut entry = FigureEntry {
        value,
        measured_at_unix_seconds: None,
        reported_by: None,
        estimated_by: None,
    };
    match figure.provenance() {
        Provenance::Measured { unix_seconds } => {
            entry.measured_at_unix_seconds = Some(*unix_seconds);
        }
        Provenance::Reported { by } => entry.reported_by = Some(by.to_string()),
        Provenance::Estimated { rule } => entry.estimated_by = Some(rule.to_string()),
        Provenance::Unknown => {}
    }
    entry.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
    let FigureEntry { value, measured_at_unix_seconds, reported_by, estimated_by } =
        object::deserialize(deserializer)?;
    let figure = match (measured_at_unix_seconds, reported_by, estimated_by) {
        (Some(unix_seconds), None, None) => Figure::measured(value, unix_seconds),
        (None, Some(by), None) => Figure::reported(value, by),
        (None, None, Some(rule)) => Figure::estimated(value, rule),
        _ => {
            return Err(de::Error::custom(
                "a figure needs exactly one of `measured_at_unix_seconds`, `reported_by` and \
                 `estimated_by`; say where the value comes from",
            ));
        }
    };
    figure.map_err(de::Error::custom)
}
