//! Schemathesis makes requests from the description, good and bad ones, and looks whether the answers are as described.

use crate::venv;
use crate::world::World;
use orchestrator_server::serve;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;

/// Its settings, with the reasons for what is left out, and what it cannot know.
const FILES: [(&str, &str); 2] = [
    ("schemathesis.toml", include_str!("../schemathesis/schemathesis.toml")),
    ("hooks.py", include_str!("../schemathesis/hooks.py")),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_is_as_described() {
    let programs = tokio::task::spawn_blocking(|| venv::with("schemathesis==4.32.5")).await.unwrap();
    let world = World::taking(4 << 20).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopping = world.stopping.clone();
    let server = tokio::spawn(serve(listener, world.router.clone(), stopping, Duration::from_secs(10)));
    // It reads its settings from where it runs, and leaves there what it has seen.
    let place = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let output = Command::new(programs.join("schemathesis"))
        .args(["run", "--no-color"])
        .arg(format!("http://{address}/openapi.json"))
        .current_dir(place.path())
        .env_remove("CI")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
    // A run that asked hardly anything would prove nothing.
    assert!(told.contains("passed"), "{told}");
    world.stopping.cancel();
    server.await.unwrap();
}
