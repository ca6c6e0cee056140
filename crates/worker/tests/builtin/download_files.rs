//! `download`: what it does to the disk.

use super::download::{Run, one};
use super::server::{Reply, Server};
use super::{completed, config, failed, handler};
use orchestrator_core::{ErrorClass, Outcome};
use orchestrator_worker::builtin::BuiltinConfig;
use serde_json::json;
use std::path::Path;

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[tokio::test]
async fn what_is_there_is_skipped() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let mut run = Run::new(one(server.url("/a")));
    std::fs::write(run.dir.path().join("file"), "anything").unwrap();
    let path = run.dir.path().join("file");
    let there = Outcome::Skipped(json!({"path": path, "reason": "already there"}).into());
    assert_eq!(run.leg().await, there);

    run.work.leased.payload =
        json!({"sources": [{"url": server.url("/a")}], "to": "file", "sha256": ABC}).into();
    completed(run.finish().await);
    assert_eq!(run.file("file"), "abc", "another file of that name is replaced");
    assert_eq!(run.leg().await, there, "and the right one is kept");

    std::fs::write(&path, "").unwrap();
    run.work.leased.payload = one(server.url("/a")).into();
    completed(run.finish().await);
    assert_eq!(run.file("file"), "abc", "an empty file is no file");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn a_wrong_checksum_fails_the_source() {
    let server = Server::start(|r| Reply::ok(if r.path == "/good" { "abc" } else { "abd" })).await;
    let mut run = Run::new(json!({
        "sources": [{"url": server.url("/bad")}, {"url": server.url("/good")}],
        "to": "file",
        "sha256": ABC.to_uppercase(),
    }));
    let output = completed(run.finish().await).value();
    assert_eq!((&output["source"], &output["sha256"]), (&json!(1), &json!(ABC)));

    let mut run = Run::new(json!({"sources": [{"url": server.url("/bad")}], "to": "file", "sha256": ABC}));
    let failure = failed(run.finish().await);
    assert_eq!(failure.class, ErrorClass::Validation);
    assert!(failure.message.contains(ABC), "{failure}");
    assert_eq!(run.files(), [""; 0]);
}

#[tokio::test]
async fn a_file_beyond_the_cap_is_refused() {
    let server = Server::start(|r| {
        let body = "x".repeat(if r.path.contains("fits") { 1000 } else { 1001 });
        if r.path.contains("unknown") {
            Reply::raw(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{body}"))
        } else {
            Reply::ok(body)
        }
    })
    .await;
    for (path, fits) in [("/fits", true), ("/unknown-fits", true), ("/over", false), ("/unknown-over", false)]
    {
        let mut run =
            Run::new(json!({"sources": [{"url": server.url(path)}], "to": "file", "max_size": "1KB"}));
        if fits {
            assert_eq!(completed(run.finish().await).value()["bytes"], 1000, "{path}");
        } else {
            let failure = failed(run.finish().await);
            assert_eq!(failure.class, ErrorClass::Validation, "{failure}");
            assert!(failure.message.contains("1.0 KB"), "{failure}");
            assert_eq!(run.files(), [""; 0]);
        }
    }
    let large = Server::start(|_| Reply::ok("x".repeat(100_001))).await;
    let failure = failed(Run::new(one(large.url("/"))).finish().await);
    assert!(failure.message.contains("100.0 KB"), "the default cap: {failure}");
}

#[tokio::test]
async fn what_is_no_whole_file_is_refused() {
    let server = Server::start(|r| match r.path.as_str() {
        "/cut" => Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
        "/part" => Reply::new(206, &[("content-range", "bytes 0-2/9")], "abc"),
        _ => Reply::ok(""),
    })
    .await;
    for (path, class) in
        [("/cut", ErrorClass::Network), ("/part", ErrorClass::Permanent), ("/empty", ErrorClass::Validation)]
    {
        let mut run = Run::new(one(server.url(path)));
        let failure = failed(run.finish().await);
        assert_eq!(failure.class, class, "{failure}");
        assert_eq!(run.files(), [""; 0], "{path}");
    }
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let mut run =
        Run::new(json!({"sources": [{"url": server.url("/empty")}], "to": "file", "sha256": empty}));
    assert_eq!(completed(run.finish().await).value()["bytes"], 0, "unless it is what was asked for");
}

#[tokio::test(start_paused = true)]
async fn silence_in_the_middle_is_a_timeout() {
    let server = Server::start(|_| Reply::hang("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    let mut run = Run::new(one(server.url("/")));
    let failure = failed(run.finish().await);
    assert_eq!(failure.class, ErrorClass::Timeout, "{failure}");
    assert_eq!(run.files(), [""; 0]);
}

/// Polls an attempt until the first bytes are on disk.
async fn until_bytes_arrive(run: &Run, attempt: &mut (impl Future<Output = Outcome> + Unpin)) {
    let part = format!("file.part-{}-0-2", run.work.leased.task.job);
    while std::fs::read(run.dir.path().join(&part)).unwrap_or_default().is_empty() {
        tokio::select! {
            outcome = &mut *attempt => panic!("{outcome:?}"),
            () = tokio::task::yield_now() => {}
        }
    }
}

#[tokio::test]
async fn an_attempt_that_must_end_leaves_nothing() {
    let server = Server::start(|_| Reply::hang("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    for dropped in [true, false] {
        let mut run = Run::new(one(server.url("/")));
        assert!(matches!(run.leg().await, Outcome::Continue(_)));
        let mut attempt = run.handler.run(run.work.clone());
        until_bytes_arrive(&run, &mut attempt).await;
        if dropped {
            drop(attempt);
        } else {
            run.work.cancelled.cancel();
            assert_eq!(attempt.await, Outcome::Released);
        }
        assert_eq!(run.files(), [""; 0]);
    }
}

#[tokio::test]
async fn leftovers_of_dead_attempts_are_removed() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let mut run = Run::new(one(server.url("/")));
    let job = run.work.leased.task.job;
    run.work.leased.counters.attempt = 12;
    for attempt in [1, 11, 40] {
        std::fs::write(run.dir.path().join(format!("file.part-{job}-0-{attempt}")), "half").unwrap();
    }
    std::fs::write(run.dir.path().join("file.part-of-somebody-else"), "half").unwrap();
    completed(run.finish().await);
    // A later attempt than ours is alive, and it is ours that is dead.
    assert_eq!(run.files(), ["file", &format!("file.part-{job}-0-40"), "file.part-of-somebody-else"]);
}

#[tokio::test]
async fn without_a_path_the_name_comes_from_the_key_or_the_url() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let payload = json!({"sources": [{"url": server.url("/papers/10.1%2Fx.pdf?v=1")}]});
    for (tenant, key, start, end) in [
        ("default", Some("report.pdf"), "report.pdf", "report.pdf"),
        ("default", Some("doi:10.1/x"), "doi_10.1_x-", ""),
        ("default", Some("../../etc/passwd"), "_.._etc_passwd-", ""),
        ("default", None, "10.1_2Fx-", ".pdf"),
        ("acme", Some("report.pdf"), "acme/report.pdf", "acme/report.pdf"),
        ("..", Some("report.pdf"), "file-", "/report.pdf"),
    ] {
        let mut run = Run::new(payload.clone());
        run.work.leased.tenant = tenant.into();
        run.work.leased.key = key.map(Into::into);
        let output = completed(run.finish().await).value();
        let path = Path::new(output["path"].as_str().unwrap()).strip_prefix(run.dir.path()).unwrap();
        let name = path.to_str().unwrap();
        assert!(name.starts_with(start) && name.ends_with(end), "{tenant} {key:?}: {name}");
        assert_eq!(run.file(name), "abc");
    }
}

#[tokio::test]
async fn tasks_of_a_flow_share_its_key_but_not_its_file() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let mut run = Run::new(json!({"sources": [{"url": server.url("/papers/x.pdf")}]}));
    run.work.leased.key = Some("report.pdf".into());
    run.work.leased.flow = Some("reports".into());
    completed(run.finish().await);
    let files = run.files();
    assert!(files.len() == 1 && files[0].starts_with("x-"), "{files:?}");
}

#[tokio::test]
async fn an_absolute_path_is_taken_as_it_is() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let elsewhere = tempfile::tempdir().unwrap();
    let path = elsewhere.path().join("new/dir/file");
    let mut run = Run::new(json!({"sources": [{"url": server.url("/")}], "to": path}));
    assert_eq!(completed(run.finish().await).value()["path"], json!(path));
    assert_eq!(std::fs::read_to_string(path).unwrap(), "abc");
    assert_eq!(run.files(), [""; 0]);
}

#[tokio::test]
async fn trouble_with_the_disk_is_not_the_source_s() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let sources = json!([{"url": server.url("/1")}, {"url": server.url("/2")}]);
    let mut run = Run::new(json!({"sources": sources, "to": "file/below"}));
    std::fs::write(run.dir.path().join("file"), "in the way").unwrap();
    let failure = failed(run.finish().await);
    assert_eq!(failure.class, ErrorClass::Permanent, "{failure}");
    assert!(failure.message.contains("file/below"), "{failure}");

    let mut run = Run::new(json!({"sources": sources, "to": "dir"}));
    std::fs::create_dir(run.dir.path().join("dir")).unwrap();
    assert_eq!(failed(run.finish().await).class, ErrorClass::Permanent);
    assert!(server.seen().is_empty(), "nothing was asked in vain");

    // Files cannot be made in /proc, by nobody.
    let mut run = Run::new(one(server.url("/3")));
    let config = BuiltinConfig { download_dir: "/proc/self/fdinfo".into(), ..config(Path::new("")) };
    run.handler = handler("download", config);
    let failure = failed(run.finish().await);
    assert!(failure.message.contains("/proc/self/fdinfo/file"), "{failure}");
    assert_eq!(server.paths(), ["/3"], "and no other source is asked");
}
