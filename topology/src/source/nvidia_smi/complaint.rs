//! What nvidia-smi says when it has nothing to print.

use crate::source::text::lines;

/// What nvidia-smi prints instead of a topology, by how it begins, and what to do.
const COMPLAINTS: [(&str, &str); 7] = [
    ("The -i command line argument must be used", "run `nvidia-smi topo -m` without -i"),
    (
        "NVIDIA-SMI has failed because it couldn't communicate",
        "load the NVIDIA driver, and run the command again",
    ),
    ("Failed to initialize NVML", "reboot, or reload the driver so that it fits its library"),
    ("No devices were found", "there is no GPU that the driver can use"),
    ("Unable to determine the device handle", "a GPU has fallen off the bus; reset or replace it"),
    ("Invalid combination of input arguments", "run `nvidia-smi topo -m`"),
    ("Not supported on the device", "these GPUs do not tell their topology"),
];

/// The line with which nvidia-smi, or the shell in its place, complains; and what to do.
pub(super) fn complaint(text: &str) -> Option<(Option<usize>, String)> {
    lines(text).into_iter().find_map(|line| {
        let said = line.text.trim();
        let remedy = COMPLAINTS
            .iter()
            .find(|(start, _)| said.starts_with(start))
            .map(|(_, remedy)| *remedy)
            .or_else(|| {
                let is_missing = said.contains("nvidia-smi")
                    && ["not found", "No such file", "not recognized"]
                        .iter()
                        .any(|end| said.contains(end));
                is_missing.then_some("install the NVIDIA driver, which brings nvidia-smi")
            })?;
        let said: String = said.chars().take(120).collect();
        Some((Some(line.number), format!("nvidia-smi says `{said}`; {remedy}")))
    })
}
