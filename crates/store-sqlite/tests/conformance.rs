//! The embedded store passes the suite that every store passes.

use async_trait::async_trait;
use orchestrator_store::conformance::{self, Fixture};
use orchestrator_store::{Clock, Store};
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Files {
    dir: tempfile::TempDir,
    made: AtomicU32,
    open: std::sync::Mutex<Option<PathBuf>>,
}

impl Files {
    fn new() -> Self {
        // In memory where there is such a place: what a sync costs is not what is tested here.
        let memory = std::path::Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
        Files { dir, made: AtomicU32::new(0), open: std::sync::Mutex::new(None) }
    }
}

fn open(path: &std::path::Path, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
    SqliteStore::open(path, Options { clock, ..Options::default() }).unwrap()
}

#[async_trait]
impl Fixture for Files {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let path = self.dir.path().join(format!("{}.db", self.made.fetch_add(1, Ordering::Relaxed)));
        *self.open.lock().unwrap() = Some(path.clone());
        open(&path, clock)
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        drop(store);
        let path = self.open.lock().unwrap().clone()?;
        Some(open(&path, clock))
    }
}

#[tokio::test]
async fn examples() {
    conformance::examples(&Files::new()).await;
}

/// How many sequences each half runs: `RANDOM_SEQUENCES` asks for more than a quick look.
fn sequences() -> u32 {
    std::env::var("RANDOM_SEQUENCES").map_or(250, |n| n.parse().expect("RANDOM_SEQUENCES is a number"))
}

/// In two halves, which run beside each other.
#[tokio::test]
async fn random_sequences() {
    conformance::random_sequences(&Files::new(), sequences(), 50, 1).await;
}

#[tokio::test]
async fn more_random_sequences() {
    conformance::random_sequences(&Files::new(), sequences(), 50, 1_000_001).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn racing_leasers() {
    conformance::racing_leasers(&Files::new()).await;
}

#[tokio::test]
async fn batches_equal_singles() {
    conformance::batches_equal_singles(&Files::new(), 1).await;
}
