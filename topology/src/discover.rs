//! What this machine says about itself: sysfs and AMD's kernel driver read directly, and the tools
//! that are installed asked.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use crate::source::{Format, Reading, read_text, read_tree, wanted_in_sysfs};
use crate::{FileTree, Machine};
use command::{Command, Ended};

mod command;
#[cfg(test)]
mod tests;

/// Where to look, and how long to wait.
///
/// ```
/// use hopwise_topology::{DiscoverOptions, discover};
///
/// let found = discover(&DiscoverOptions::default());
/// println!("{} GPUs", found.machine().gpus().len());
/// for problem in &found.problems {
///     println!("warning: {problem}");
/// }
/// ```
#[derive(Clone, Debug)]
pub struct DiscoverOptions {
    /// The root of sysfs.
    pub sysfs: PathBuf,
    /// Folders in which tools are looked for.
    pub search_path: Vec<PathBuf>,
    /// How long a tool may take. One that takes longer is killed.
    pub tool_limit: Duration,
}

/// `/sys`, the folders of the environment variable `PATH`, and ten seconds.
impl Default for DiscoverOptions {
    fn default() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        Self {
            sysfs: PathBuf::from("/sys"),
            search_path: env::split_paths(&path).collect(),
            tool_limit: Duration::from_secs(10),
        }
    }
}

/// What was found, and what went wrong on the way.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// What each source says.
    pub readings: Vec<Reading>,
    /// Sources that are there, but sick: each with the reason. A tool that is not installed is
    /// none.
    pub problems: Vec<String>,
}

impl Discovery {
    /// All of it joined.
    pub fn machine(&self) -> Machine {
        Machine::merge(&self.readings)
    }
}

/// The tools, and what to ask them.
const TOOLS: [(&str, &[&str], Format); 8] = [
    ("nvidia-smi", &["topo", "-m"], Format::NvidiaSmiTopo),
    ("nvidia-smi", &["topo", "-p2p", "r"], Format::NvidiaSmiPeer),
    ("nvidia-smi", &["topo", "-p2p", "w"], Format::NvidiaSmiPeer),
    ("nvidia-smi", &["nvlink", "-s"], Format::NvidiaSmiNvlink),
    ("rocm-smi", &["--showtopo"], Format::RocmSmi),
    ("amd-smi", &["topology", "--json"], Format::AmdSmi),
    ("xpu-smi", &["topology", "-m"], Format::XpuSmi),
    ("lspci", &["-tv"], Format::Lspci),
];

/// Asks the machine what it has.
///
/// A sick or silent source costs a warning and its time limit, never the rest. Costs a walk over
/// the PCI devices of sysfs, and the time that the installed tools take one after the other.
pub fn discover(options: &DiscoverOptions) -> Discovery {
    let mut found = Discovery::default();
    read_sysfs(&options.sysfs, &mut found);
    for (tool, arguments, format) in TOOLS {
        // Without names of classes lspci tells less than sysfs.
        let is_needed = format != Format::Lspci || found.readings.is_empty();
        if let Some(program) = find(tool, &options.search_path).filter(|_| is_needed) {
            let command = Command { program, arguments, limit: options.tool_limit };
            ask(&command, format, &mut found);
        }
    }
    found
}

fn read_sysfs(root: &Path, found: &mut Discovery) {
    let Ok(tree) = FileTree::read(root, wanted_in_sysfs) else { return };
    match read_tree(&tree, None) {
        Ok(readings) => found.readings.extend(readings),
        Err(_) if tree.is_empty() => {}
        Err(error) => found.problems.push(format!("{}: {error}", root.display())),
    }
}

fn ask(command: &Command<'_>, format: Format, found: &mut Discovery) {
    let problem = |text: String| format!("{command}: {text}");
    match command.run() {
        Ended::Printed(text) => match read_text(&text, Some(format)) {
            Ok(readings) => found.readings.extend(readings),
            Err(error) => found.problems.push(problem(error.to_string())),
        },
        Ended::Failed(reason) => found.problems.push(problem(reason)),
    }
}

/// The first file of this name that is in one of the folders.
fn find(tool: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let candidates = folders.iter().filter(|folder| folder.is_absolute());
    candidates
        .map(|folder| folder.join(tool))
        .find(|path| fs::metadata(path).is_ok_and(|file| file.is_file()))
}
