//! The search through files and folders that the tests write.

use super::*;

/// A folder of its own for each test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("hopwise-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.0.join(name);
        fs::write(&file, text).expect("the test's folder can be written");
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_first_folder_with_the_loader_gives_its_path() {
    let (empty, full) = (Folder::new("empty"), Folder::new("full"));
    let loader = full.write(FILE_NAME, "");
    assert_eq!(find(&[empty.0.clone(), full.0.clone()]), Some(loader));
    assert_eq!(find(std::slice::from_ref(&empty.0)), None);
}

#[test]
fn included_files_are_followed_and_a_circle_ends() {
    let folder = Folder::new("conf");
    folder.write("a.conf", "/from/a # why\n");
    folder.write("b.conf", "# nothing\n/from/b\n");
    folder.write("b.txt", "/not/this\n");
    let main = folder.write("main", "include *.conf\n/from/main\nrelative\n");
    let found = configured_folders(&main, 0);
    assert_eq!(found, ["/from/a", "/from/b", "/from/main"].map(PathBuf::from));

    let circle = folder.write("circle", "/once\ninclude circle\n");
    assert!(configured_folders(&circle, 0).iter().all(|found| found == Path::new("/once")));
    assert_eq!(configured_folders(Path::new("no-such-file"), 0), Vec::<PathBuf>::new());
}

#[test]
fn only_folders_that_exist_are_searched_each_once() {
    let found = folders();
    for (index, folder) in found.iter().enumerate() {
        assert!(folder.is_dir(), "{}", folder.display());
        assert!(!found[..index].contains(folder), "{} twice", folder.display());
    }
}
