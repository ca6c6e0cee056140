//! Runs a check over every input that is kept in the tree: the corpus of a target, and what it has ever found.

use std::path::Path;

/// Calls `check` with each input; a panic names its file.
pub fn all(target: &str, check: impl Fn(&[u8])) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut replayed = 0;
    for kept in ["corpus", "regressions"] {
        // Where a target has never found anything, there is nothing to replay.
        let Ok(files) = std::fs::read_dir(root.join(kept).join(target)) else { continue };
        for file in files {
            let path = file.unwrap().path();
            let input = std::fs::read(&path).unwrap();
            let _named = Named(&path);
            check(&input);
            replayed += 1;
        }
    }
    assert!(replayed > 10, "{target}: the corpus is missing");
}

struct Named<'a>(&'a Path);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            #[allow(clippy::print_stderr, reason = "a test that fails says where")]
            {
                eprintln!("with the input {}", self.0.display());
            }
        }
    }
}
