//! Private folders are found; addresses and relative paths are not.

use super::super::found;
use super::check;

#[test]
fn a_path_of_one_machine_is_found() {
    for folder in super::FOLDERS {
        let text = format!("first\nsee `/{folder}/x`, or \"/{folder}\"\n");
        let offence = format!("a.md:2: /{folder} is a path of one machine");
        assert_eq!(found(check, &[("a.md", &text)]), [offence.clone(), offence]);
    }
}

#[test]
fn other_paths_are_fine() {
    let text = format!(
        "https://example.org/{0}/x a/{0}/b ../{0} ./{0} ~/{0} /{0}station/x /usr/{0} //{0}",
        super::FOLDERS[0]
    );
    assert!(found(check, &[("a.md", &text)]).is_empty());
}
