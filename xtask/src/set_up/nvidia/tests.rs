//! Tests of finding compilers.

use super::*;

/// A folder of this test, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        let file = self.0.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "").unwrap();
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn compilers_that_somebody_named_are_taken_if_they_are_there() {
    let folder = Folder::new("nvidia-named");
    let [nvrtc, ptxas] = ["nvrtc.so", "ptxas"].map(|name| folder.file(name));
    let find = |nvrtc: &Path, ptxas: &Path| {
        let [nvrtc, ptxas] = [nvrtc, ptxas].map(|path| path.as_os_str().to_owned());
        named(move |name| match name {
            "HOPWISE_NVRTC" => Some(nvrtc.clone()),
            "HOPWISE_PTXAS" => Some(ptxas.clone()),
            _ => None,
        })
    };
    let all = find(&nvrtc, &ptxas).unwrap().unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!(all[0], ("HOPWISE_NVRTC", nvrtc.display().to_string()));
    assert_eq!(all[2], ("HOPWISE_REQUIRE_NVIDIA_COMPILERS", "1".to_owned()));
    let wrong = find(&nvrtc, Path::new("no/such/file")).unwrap().unwrap_err();
    assert!(wrong.starts_with("HOPWISE_PTXAS names no file"), "{wrong}");
    let half = find(&nvrtc, Path::new("")).unwrap().unwrap_err();
    assert!(half.starts_with("HOPWISE_PTXAS is not set; set both"), "{half}");
    assert_eq!(find(Path::new(""), Path::new("")), None);
}

#[test]
fn wheels_are_fetched_until_all_of_them_is_there() {
    let folder = Folder::new("nvidia-wheels");
    assert!(!has_all(&folder.0));
    folder.file(COMPILERS[0].in_wheel);
    assert!(!has_all(&folder.0));
    folder.file(COMPILERS[1].in_wheel);
    assert!(has_all(&folder.0));
    let variables = environment(&folder.0);
    assert!(variables[..2].iter().all(|(_, path)| Path::new(path).is_file()));
}

#[test]
fn pip_takes_the_pinned_files_only() {
    let lines: Vec<_> = REQUIREMENTS.lines().collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(line.contains(&format!("=={VERSION} --hash=sha256:")), "{line}");
    }
    let command = download(Path::new("a/list.txt"), Path::new("a"), Path::new(".")).to_string();
    assert!(command.contains("--require-hashes -r a/list.txt -d a"), "{command}");
}

#[test]
fn only_wheels_are_unpacked() {
    let folder = Folder::new("nvidia-unpack");
    let wheel = folder.file("one.whl");
    folder.file("requirements.txt");
    assert_eq!(wheels(&folder.0), Ok(vec![wheel]));
    assert!(wheels(Path::new("no/such/folder")).unwrap_err().starts_with("cannot read "));
}
