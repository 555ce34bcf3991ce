//! Lines as people paste them, and what nvidia-smi says when it has nothing to print.

/// A line without the codes that make a terminal underline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    /// From 1.
    pub(super) number: usize,
    /// Whether the text ends within it.
    pub(super) is_cut: bool,
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let ends_well = text.ends_with('\n');
    let count = text.lines().count();
    let line = |(at, text)| Line { text, number: at + 1, is_cut: at + 1 == count && !ends_well };
    text.lines().enumerate().map(line).collect()
}

/// The text without escape sequences of terminals.
pub(super) fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\u{1b}' {
            plain.push(letter);
            continue;
        }
        if letters.next_if_eq(&'[').is_some() {
            while letters.next_if(|next| matches!(next, '0'..='9' | ';' | '?')).is_some() {}
            letters.next_if(char::is_ascii_alphabetic);
        }
    }
    plain
}

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
