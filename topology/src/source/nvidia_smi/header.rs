//! The header line of a matrix: which device each column stands for.

/// Starts of device names, by which glued names are told apart: those that nvidia-smi gives, and
/// those of Linux's RDMA drivers.
const STARTS: [&str; 18] = [
    "GPU", "NIC", "CPU", "NUMA", "mlx5_", "mlx4_", "mlx", "bnxt_re", "irdma", "rocep", "roce",
    "hsi", "efa_", "rdmap", "ibp", "ib", "hfi1_", "mana_",
];

/// Titles of the columns after the matrix, in the order in which nvidia-smi prints them.
const TITLES: [(&str, Trailing); 3] = [
    ("CPU Affinity", Trailing::Cpu),
    ("NUMA Affinity", Trailing::Numa),
    ("GPU NUMA ID", Trailing::GpuNuma),
];

/// A column after the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trailing {
    Cpu,
    Numa,
    GpuNuma,
}

/// The columns of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// `GPU0`, `NIC1`, `mlx5_0`.
    pub(super) labels: Vec<String>,
    pub(super) trailing: Vec<Trailing>,
}

impl Header {
    /// The header that a line is, if it is one.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (names, titles) = split_titles(line);
        let mut labels = Vec::new();
        for word in names.split([' ', '\t', '|']).filter(|word| !word.is_empty()) {
            labels.extend(split_glued(word));
        }
        let gpus = labels.iter().take_while(|label| gpu_number(label).is_some()).count();
        let are_names = labels[gpus..].iter().all(|label| is_nic_name(label));
        if gpus == 0 || !are_names {
            return None;
        }
        let trailing = TITLES.iter().filter(|(title, _)| titles.contains(title));
        Some(Self { labels, trailing: trailing.map(|(_, column)| *column).collect() })
    }

    /// The column of a name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.labels.iter().position(|label| label == name)
    }

    /// Names that stand over two columns.
    pub(super) fn repeated(&self) -> Option<&str> {
        let is_repeated = |(at, label): &(usize, &String)| self.labels[..*at].contains(label);
        self.labels.iter().enumerate().find(is_repeated).map(|(_, label)| label.as_str())
    }

    pub(super) fn gpus(&self) -> usize {
        self.labels.iter().filter(|label| gpu_number(label).is_some()).count()
    }

    /// The column whose row a line is, and what follows the name.
    pub(super) fn row_of<'l>(&self, line: &'l str) -> Option<(usize, &'l str)> {
        let line = line.trim_start_matches([' ', '\t', '|']);
        let fits = |label: &&String| {
            line.strip_prefix(label.as_str()).is_some_and(|rest| !rest.starts_with(is_name_part))
        };
        let label = self.labels.iter().filter(fits).max_by_key(|label| label.len())?;
        Some((self.column(label)?, &line[label.len()..]))
    }
}

/// Divides a header into the names of devices and the titles after them.
fn split_titles(line: &str) -> (&str, &str) {
    let starts = TITLES.iter().filter_map(|(title, _)| line.find(title));
    line.split_at(starts.min().unwrap_or(line.len()))
}

/// The number of a GPU's name.
pub(super) fn gpu_number(label: &str) -> Option<u32> {
    let digits = label.strip_prefix("GPU")?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok())?
}

/// Whether a word can be the name of a network interface: letters, and a number somewhere.
fn is_nic_name(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && word.chars().all(is_name_part)
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && !is_class(word)
}

/// Whether a word begins as a cell does: then its line is a row.
fn is_class(word: &str) -> bool {
    let names = ["X", "PIX", "PXB", "PHB", "NODE", "SYS", "SOC"];
    let is_nvlink = word
        .strip_prefix("NV")
        .is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()));
    is_nvlink || names.iter().any(|name| word.starts_with(name))
}

const fn is_name_part(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// Names that lost what stood between them: a digit, and then the start of a name.
fn split_glued(word: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut start = 0;
    for (at, pair) in word.as_bytes().windows(2).enumerate().map(|(at, pair)| (at + 1, pair)) {
        let starts_name =
            word.is_char_boundary(at) && STARTS.iter().any(|name| word[at..].starts_with(name));
        if pair[0].is_ascii_digit() && starts_name {
            names.push(word[start..at].to_owned());
            start = at;
        }
    }
    names.push(word[start..].to_owned());
    names
}
