//! Tests of finding drivers.

use std::fs;

use super::*;

/// A folder with these files, gone at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn with(test: &str, files: &[&str]) -> Self {
        let folder = env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            fs::write(folder.join(file), "{}").unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_manifest_is_a_json_file_with_the_name_of_the_driver() {
    let [lavapipe, _] = &DRIVERS;
    assert!(!lavapipe.has_manifest(Path::new("no/such/folder")));
    let cards = ["intel_icd.x86_64.json", "nvidia_icd.json", "lvp_icd.txt"];
    let cards = Folder::with("cards", &cards);
    assert!(!lavapipe.has_manifest(&cards.0), "a card's driver may have no card");
    let all = Folder::with("all", &["intel_icd.x86_64.json", "lvp_icd.x86_64.json"]);
    assert!(lavapipe.has_manifest(&all.0));
    let plain = Folder::with("plain", &["lvp_icd.json"]);
    assert!(lavapipe.has_manifest(&plain.0));
}

#[test]
fn a_variable_counts_instead_of_the_folders() {
    let folder = Folder::with("named", &["any_icd.json"]);
    let file = folder.0.join("any_icd.json");
    let both = env::join_paths([Path::new("no/such/file"), &file]).unwrap();
    for driver in &DRIVERS {
        let variable = driver.variables[0];
        let named = |value: OsString| {
            driver.presence(move |name| (name == variable).then(|| value.clone()))
        };
        assert_eq!(named(file.clone().into()), Presence::Found);
        assert_eq!(named(both.clone()), Presence::Found);
        assert_eq!(named("no/such/file".into()), Presence::Misnamed(variable));
        assert_eq!(named("".into()), driver.presence(|_| None), "as if it were not set");
    }
}

#[test]
fn the_first_variable_that_is_set_counts() {
    let [lavapipe, _] = &DRIVERS;
    let value = |name: &str| (name == "VK_ICD_FILENAMES").then(|| "no/such/file".into());
    assert_eq!(lavapipe.presence(value), Presence::Misnamed("VK_ICD_FILENAMES"));
    assert_eq!(
        lavapipe.presence(|_| Some("no/such/file".into())),
        Presence::Misnamed("VK_DRIVER_FILES")
    );
}

#[test]
fn a_driver_without_its_manifest_is_missing() {
    let nowhere = Driver { folders: &["no/such/folder"], ..DRIVERS[0] };
    assert_eq!(nowhere.presence(|_| None), Presence::Missing);
}
