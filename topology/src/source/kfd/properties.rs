//! A file of properties: a key and a number in each line.

use std::collections::BTreeMap;

/// Numbers by key.
#[derive(Debug, Default)]
pub(super) struct Properties {
    values: BTreeMap<String, u64>,
}

impl Properties {
    /// Reads a file. A key that is stated twice with different numbers has none; such keys are
    /// returned, too.
    pub(super) fn read(text: &str) -> (Self, Vec<String>) {
        let mut values: BTreeMap<String, u64> = BTreeMap::new();
        let mut contradicted = Vec::new();
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once(' ') else { continue };
            let Ok(value) = value.trim().parse() else { continue };
            let before = values.insert(key.to_owned(), value);
            if before.is_some_and(|before| before != value) {
                contradicted.push(key.to_owned());
            }
        }
        for key in &contradicted {
            values.remove(key);
        }
        (Self { values }, contradicted)
    }

    pub(super) fn get(&self, key: &str) -> Option<u64> {
        self.values.get(key).copied()
    }
}
