//! The examples that every store passes, through a server: what is asked over HTTP does and shows the same.

use crate::through::Through;
use async_trait::async_trait;
use orchestrator_store::Store;
use orchestrator_store::clock::Clock;
use orchestrator_store::conformance::{Fixture, examples};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Submits that a request cannot hold (two limits of one kind, no limit on the time, twice a key that no flow made), or that the
/// engine refuses before a store sees them (twice: to wait for a job that is not there). More than these deserve a look.
const NOT_SENT: u32 = 6;

struct Files {
    dir: tempfile::TempDir,
    last: Mutex<PathBuf>,
    count: AtomicU32,
    not_sent: Arc<AtomicU32>,
}

#[async_trait]
impl Fixture for Files {
    async fn fresh(&self, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let path = self.dir.path().join(format!("{}.db", self.count.fetch_add(1, Ordering::SeqCst)));
        *self.last.lock().unwrap() = path.clone();
        Arc::new(Through::open(&path, clock, self.not_sent.clone()).await)
    }

    async fn reopen(&self, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Option<Arc<dyn Store>> {
        store.close().await;
        drop(store);
        let path = self.last.lock().unwrap().clone();
        Some(Arc::new(Through::open(&path, clock, self.not_sent.clone()).await))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_holds_through_a_server() {
    // In memory where there is such a place: what a sync costs is not what is tested.
    let memory = std::path::Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap();
    let files = Files { dir, last: Mutex::default(), count: AtomicU32::new(0), not_sent: Arc::default() };
    examples(&files).await;
    assert_eq!(files.not_sent.load(Ordering::SeqCst), NOT_SENT);
}
