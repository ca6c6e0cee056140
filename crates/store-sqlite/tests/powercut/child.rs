//! A process that works on a store while strace writes down what it does to its files.

use crate::story::Story;
use orchestrator_store::conformance::crash;
use orchestrator_store_sqlite::{Options, SqliteStore};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tokio::sync::Notify;

/// The name of the database's file.
pub const DATABASE: &str = "work.db";
/// What tells the process's own lines from those of the test harness around it.
pub const MARK: &str = "child: ";

const DIRECTORY: &str = "ORCHESTRATOR_TEST_DIRECTORY";
/// It opens the file so often, and tells so many lines each time.
const LIVES: u64 = 3;
const LINES: usize = 1000;

/// All that changes a file, or says that a change be kept. Those that the story has no meaning for
/// are here to be refused. A question mark is for machines that do not have the call.
const CALLS: &str = "trace=?open,openat,?openat2,?creat,write,writev,pwrite64,pwritev,?pwritev2,\
    ?truncate,ftruncate,fallocate,?rename,?renameat,?renameat2,?unlink,unlinkat,?link,linkat,?symlink,symlinkat,\
    fsync,fdatasync,sync_file_range,sync,?syncfs,msync,mmap,?copy_file_range,?sendfile,splice,\
    ?io_uring_setup,?io_uring_enter,?io_submit";

#[tokio::test]
#[ignore = "a process that the other tests start under strace"]
async fn a_worker_that_is_watched() {
    let directory = std::env::var_os(DIRECTORY).expect("only other tests start this, with a directory");
    let path = PathBuf::from(directory).join(DATABASE);
    for life in 1..=LIVES {
        let store = SqliteStore::open(&path, Options::default()).unwrap();
        let (mut left, enough) = (LINES, Notify::new());
        let mut tell = |line: String| {
            // Straight out, in one write: what the harness would keep for later is not told.
            std::io::stdout().write_all(format!("{MARK}{line}\n").as_bytes()).unwrap();
            left = left.saturating_sub(1);
            if left == 0 {
                enough.notify_one();
            }
        };
        tokio::select! {
            biased;
            () = enough.notified() => {}
            () = crash::work_until_killed(&*store, life, &mut tell) => {}
        }
        if life == LIVES {
            // In the middle of its work, without a chance to tidy up.
            std::process::exit(0);
        }
        store.close();
    }
}

/// Watches the worker in a directory below `place`, and gives the story of it.
pub fn watch(place: &Path) -> Story {
    // Strace tells of real paths.
    let place = place.canonicalize().unwrap();
    let (directory, trace) = (place.join("data"), place.join("trace.txt"));
    std::fs::create_dir(&directory).unwrap();
    get_strace();
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "1000000", "-e", CALLS, "-o"]).arg(&trace);
    strace.arg(std::env::current_exe().unwrap());
    strace.args(["child::a_worker_that_is_watched", "--exact", "--ignored", "--nocapture"]);
    let Output { status, stdout, stderr } = strace.env(DIRECTORY, &directory).output().unwrap();
    assert!(
        status.success(),
        "the worker under strace ended with {status}. If strace may not trace here (a container may need \
         `--cap-add SYS_PTRACE`), set ORCHESTRATOR_SKIP_STRACE=1 to go without this proof.\n{}",
        String::from_utf8_lossy(&stderr)
    );
    let story = Story::read(&std::fs::read_to_string(&trace).unwrap(), &directory);
    let heard = String::from_utf8_lossy(&stdout);
    let heard: Vec<&str> = heard.lines().filter_map(|line| line.strip_prefix(MARK)).collect();
    assert!(heard == story.told, "the trace does not have the lines that were heard");
    story
}

/// Finds strace, or gets it where that can be done.
fn get_strace() {
    let runs = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let is_there = || runs("strace", &["--version"]);
    let install = || runs("apt-get", &["install", "-y", "-qq", "strace"]);
    // Only root may install, for others it fails at once.
    let found = is_there() || install() || (runs("apt-get", &["update", "-qq"]) && install());
    assert!(
        found && is_there(),
        "strace is needed to see what is written and synced. Install it (`apt-get install strace`), or set \
         ORCHESTRATOR_SKIP_STRACE=1 to go without this proof."
    );
}
