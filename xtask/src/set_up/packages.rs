//! Packages of Debian, installed where that can be done without asking anybody.

use std::path::Path;

use crate::command::Command;

/// Installs packages, and fetches the list of them once.
pub(super) struct Packages<'a> {
    root: &'a Path,
    is_updated: bool,
}

impl<'a> Packages<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, is_updated: false }
    }

    /// Installs a package. The error says who can do it where this cannot.
    pub(super) fn install(&mut self, package: &str) -> Result<(), String> {
        let wanted = self.apt(&["install", "-y", "-qq", "--no-install-recommends", package]);
        let id = Command::new("id", &["-u"], self.root).output();
        let is_root = id.is_ok_and(|id| id.trim() == "0");
        if !is_root || !self.apt(&["--version"]).succeeds() {
            return Err(format!("install it as root, on Debian with `{wanted}`"));
        }
        if !self.is_updated {
            self.apt(&["update", "-qq"]).run()?;
            self.is_updated = true;
        }
        wanted.run()
    }

    /// Installs a package unless `command` succeeds already; it must succeed afterwards.
    pub(super) fn provide(&mut self, package: &str, command: &Command) -> Result<(), String> {
        if command.succeeds() {
            return Ok(());
        }
        println!("`{command}` fails: {package} is missing");
        self.install(package)?;
        if command.succeeds() {
            Ok(())
        } else {
            Err(format!("{package} was installed, but `{command}` still fails"))
        }
    }

    fn apt(&self, arguments: &[&str]) -> Command {
        Command::new("apt-get", arguments, self.root).with("DEBIAN_FRONTEND", "noninteractive")
    }
}
