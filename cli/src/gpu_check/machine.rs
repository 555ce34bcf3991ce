//! What stands above the figures: the day, the driver.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use hopwise_backend_cuda::DriverOutcome;

/// Where Linux's NVIDIA driver says which one it is.
const DRIVER_VERSION_FILE: &str = "/proc/driver/nvidia/version";

/// Today in UTC, as in 2026-01-31.
pub(super) fn today() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date(since.as_secs() / 86_400)
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the leap day is the
/// last of its year, and months then have 153 days for every five.
fn date(days: u64) -> String {
    let days = days + 719_468; // since 0000-03-01
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next_year)
}

/// The CUDA driver, where there is one: its version, and the CUDA version that it supports.
pub(super) fn driver() -> Option<String> {
    let DriverOutcome::Ready { version, .. } = hopwise_backend_cuda::probe().driver else {
        return None;
    };
    let own = fs::read_to_string(DRIVER_VERSION_FILE).ok();
    let own = own.as_deref().and_then(driver_version);
    Some(match own {
        Some(own) => format!("driver {own} for CUDA {version}"),
        None => format!("a driver for CUDA {version}"),
    })
}

/// The version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar ...`: the first
/// word that is made of numbers with a point between them.
fn driver_version(text: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines().next()?.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_782, "2024-02-29"),
            (20_454, "2026-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn the_version_is_found_in_both_forms_of_the_file() {
        for text in [
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build",
        ] {
            assert_eq!(driver_version(text), Some("550.54.15"));
        }
        assert_eq!(driver_version(""), None);
    }
}
