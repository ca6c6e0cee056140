//! `download`: sources, legs, limits and rounds, against real servers.

use super::server::{Reply, Server};
use super::{NOW, assert_refused, completed, config, failed, handler, plain, work};
use orchestrator_core::outcome::Leg;
use orchestrator_core::{ErrorClass, Failure, Json, Limits, Millis, Outcome};
use orchestrator_store::{Clock, ManualClock};
use orchestrator_worker::builtin::{BuiltinConfig, first_limits};
use orchestrator_worker::{Handler, Work};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

/// Plays the store for one task: every leg is a new attempt under the limits that were asked for.
pub struct Run {
    pub handler: Arc<dyn Handler>,
    pub clock: Arc<ManualClock>,
    pub dir: TempDir,
    pub work: Work,
    /// The limits of each leg so far.
    pub legs: Vec<Vec<String>>,
}

impl Run {
    pub fn new(payload: Value) -> Run {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let config = BuiltinConfig { clock: clock.clone(), ..config(dir.path()) };
        Run { handler: handler("download", config), clock, dir, work: work(payload), legs: vec![] }
    }

    pub async fn leg(&mut self) -> Outcome {
        let limits = &self.work.leased.limits;
        self.legs.push(limits.keys().iter().map(ToString::to_string).collect());
        let outcome = self.handler.run(self.work.clone()).await;
        self.work.leased.counters.attempt += 1;
        if let Outcome::Continue(Leg { checkpoint, limits, delay }) = &outcome {
            assert_eq!(*delay, Millis(0));
            self.work.leased.checkpoint = Some(checkpoint.clone());
            self.work.leased.limits = limits.clone();
        }
        outcome
    }

    /// Legs until there is another outcome.
    pub async fn finish(&mut self) -> Outcome {
        for _ in 0..100 {
            match self.leg().await {
                Outcome::Continue(_) => {}
                Outcome::Failed(failure) => {
                    self.work.leased.counters.failures += 1;
                    return Outcome::Failed(failure);
                }
                end => return end,
            }
        }
        panic!("it never ends: {:?}", self.legs);
    }

    pub fn file(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(path)).unwrap()
    }

    /// Every file in the download directory.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub fn one(url: String) -> Value {
    json!({"sources": [{"url": url}], "to": "file"})
}

fn limits(keys: &[&str]) -> Limits {
    Limits::new(keys.iter().map(|key| key.parse().unwrap())).unwrap()
}

#[tokio::test]
async fn each_source_is_asked_under_its_own_limits() {
    let (bad, good) =
        (Server::start(|_| Reply::status(404)).await, Server::start(|_| Reply::ok("abc")).await);
    let mut run = Run::new(json!({
        "sources": [{"resolver": "unpaywall", "url": bad.url("/1")}, {"url": bad.url("/2")}, {"resolver": "core", "url": good.url("/3")}],
        "to": "sub/abc.txt",
    }));
    run.work.leased.limits = limits(&["tenant:acme", "host:other.example", "resolver:mine"]);
    let output = completed(run.finish().await).value();
    assert_eq!(run.file("sub/abc.txt"), "abc");
    assert_eq!(
        output,
        json!({
            "path": run.dir.path().join("sub/abc.txt"),
            "bytes": 3,
            "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "source": 2,
            "url": good.url("/3"),
            "resolver": "core",
        })
    );
    let (bad_key, good_key) = (bad.key(), good.key());
    assert_eq!(
        run.legs,
        [
            vec!["host:other.example", "resolver:mine", "tenant:acme"],
            vec![&bad_key, "resolver:unpaywall", "tenant:acme"],
            vec![&bad_key, "tenant:acme"],
            vec![&good_key, "resolver:core", "tenant:acme"],
        ]
    );
    assert_eq!(bad.paths(), ["/1", "/2"]);
    assert_eq!(good.paths(), ["/3"]);
}

#[tokio::test]
async fn nothing_is_asked_without_the_limits() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let mut run = Run::new(one(server.url("/a")));
    let Outcome::Continue(leg) = run.leg().await else { panic!("it asked") };
    assert_eq!(leg.limits, limits(&[&server.key()]));
    assert!(server.seen().is_empty());
    completed(run.leg().await);
}

#[tokio::test]
async fn a_job_submitted_with_its_first_limits_needs_one_leg() {
    let server = Server::start(|_| Reply::ok("abc")).await;
    let payload = json!({"sources": [{"resolver": "core", "url": server.url("/a")}]});
    let mut run = Run::new(payload.clone());
    run.work.leased.limits = first_limits(&payload.into()).unwrap();
    completed(run.leg().await);
    assert_eq!(first_limits(&json!({"sources": []}).into()), None);
}

#[tokio::test]
async fn the_same_limits_are_still_another_lease() {
    let server = Server::start(|_| Reply::status(404)).await;
    let mut run = Run::new(json!({"sources": [{"url": server.url("/1")}, {"url": server.url("/2")}]}));
    run.work.leased.limits = limits(&[&server.key()]);
    assert!(matches!(run.leg().await, Outcome::Continue(_)));
    assert_eq!(server.paths(), ["/1"], "a rate counts leases, so one lease asks one source");
}

#[tokio::test]
async fn when_all_sources_fail_the_best_hope_counts() {
    let server = Server::start(|r| match r.path.as_str() {
        "/503" => Reply::status(503),
        "/429" => Reply::new(429, &[("retry-after", "60")], ""),
        "/429-late" => Reply::new(429, &[("retry-after", "Sun, 06 Nov 1994 08:59:37 GMT")], ""),
        "/500" => Reply::status(500),
        _ => Reply::status(404),
    })
    .await;
    let nobody = Server::nobody().await;
    let run = async |paths: &[&str]| -> Failure {
        let urls = paths.iter().map(|p| if p.is_empty() { nobody.clone() } else { server.url(p) });
        let sources: Vec<_> = urls.map(|url| json!({"url": url})).collect();
        failed(Run::new(json!({"sources": sources})).finish().await)
    };
    for (paths, class, wait) in [
        (&["/404", "/410"][..], ErrorClass::NotFound, None),
        (&["/404", "/500"], ErrorClass::Permanent, None),
        (&["/404", "/503", "/500"], ErrorClass::Unavailable, None),
        (&["", "/404"], ErrorClass::Network, None),
        (&["/429", "/404"], ErrorClass::RateLimited, Some(Millis::secs(60))),
        (&["/429-late", "/429"], ErrorClass::RateLimited, Some(Millis::secs(60))),
        (&["/429", "/429-late"], ErrorClass::RateLimited, Some(Millis::secs(60))),
        (&["/429-late"], ErrorClass::RateLimited, Some(Millis::mins(10))),
        (&["/503", "/429"], ErrorClass::RateLimited, None),
    ] {
        let failure = run(paths).await;
        assert_eq!((failure.class, failure.retry_after), (class, wait), "{paths:?}: {failure}");
        for n in 0..paths.len() {
            assert!(failure.message.contains(&format!("source {n}: ")), "{failure}");
        }
    }
}

#[tokio::test]
async fn a_retry_begins_a_new_round() {
    let server = Server::start(|_| Reply::status(503)).await;
    let mut run = Run::new(json!({"sources": [{"url": server.url("/1")}, {"url": server.url("/2")}]}));
    failed(run.finish().await);
    let again = failed(run.finish().await);
    assert_eq!(server.paths(), ["/1", "/2", "/1", "/2"]);
    assert_eq!(again.message.matches("source 0").count(), 1, "errors of earlier rounds are gone: {again}");
}

#[tokio::test]
async fn a_source_is_never_asked_earlier_than_it_wants() {
    for paths in [["/slow", "/busy"], ["/busy", "/slow"]] {
        let server = Server::start(|r| match r.path.as_str() {
            "/slow" => Reply::new(429, &[("retry-after", "60")], ""),
            _ => Reply::status(503),
        })
        .await;
        let mut run = Run::new(json!({"sources": paths.map(|path| json!({"url": server.url(path)}))}));
        assert_eq!(failed(run.finish().await).retry_after, None, "the other may be asked at once");
        run.clock.advance(Millis::secs(59));
        failed(run.finish().await);
        let asked = server.paths();
        assert_eq!(asked.iter().filter(|path| *path == "/slow").count(), 1, "{asked:?}");
        assert_eq!(asked.iter().filter(|path| *path == "/busy").count(), 2, "{asked:?}");
        run.clock.advance(Millis::secs(1));
        failed(run.finish().await);
        assert_eq!(server.paths().iter().filter(|path| *path == "/slow").count(), 2, "{:?}", server.paths());
    }
}

#[tokio::test]
async fn the_wait_shrinks_while_other_sources_are_asked() {
    let clock = Arc::new(ManualClock::new(NOW));
    let ticking = clock.clone();
    let server = Server::start(move |r| {
        ticking.advance(Millis::secs(20));
        let wait = if r.path == "/1" { "60" } else { "600" };
        Reply::new(429, &[("retry-after", wait)], "")
    })
    .await;
    let mut run = Run::new(json!({"sources": [{"url": server.url("/1")}, {"url": server.url("/2")}]}));
    let config = BuiltinConfig { clock: clock.clone(), ..config(run.dir.path()) };
    run.handler = handler("download", config);
    let failure = failed(run.finish().await);
    assert_eq!(failure.retry_after, Some(Millis::secs(40)), "20 s of the 60 have passed");
    assert_eq!(clock.now(), NOW + Millis::secs(40));
}

#[tokio::test]
async fn a_redirect_to_another_host_is_a_leg_under_its_limits() {
    let target =
        Server::start(|r| if r.path == "/b" { Reply::ok("abc") } else { Reply::redirect("b") }).await;
    let there = target.url("/a");
    let server = Server::start(move |r| Reply::redirect(if r.path == "/1" { "/2" } else { &there })).await;
    let mut run = Run::new(json!({"sources": [{"resolver": "doi", "url": server.url("/1")}], "to": "file"}));
    let output = completed(run.finish().await).value();
    assert_eq!(output["url"], server.url("/1"));
    assert_eq!(run.file("file"), "abc");
    assert_eq!(
        (server.paths(), target.paths()),
        (vec!["/1".into(), "/2".into()], vec!["/a".into(), "/b".into()])
    );
    let (first, second) = (server.key(), target.key());
    assert_eq!(
        run.legs,
        [vec![], vec![first.as_str(), "resolver:doi"], vec![second.as_str(), "resolver:doi"]]
    );
}

#[tokio::test]
async fn redirects_end() {
    let server = Server::start(|r| match r.path.as_str() {
        "/ftp" => Reply::redirect("ftp://127.0.0.1/x"),
        "/nowhere" => Reply::status(302),
        path => Reply::redirect(path),
    })
    .await;
    for (path, asked, said) in
        [("/round", 11, "more than 10 times"), ("/ftp", 1, "not ftp"), ("/nowhere", 1, "302")]
    {
        let failure = failed(Run::new(one(server.url(path))).finish().await);
        assert_eq!(failure.class, ErrorClass::Permanent, "{failure}");
        assert!(failure.message.contains(said), "{failure}");
        assert_eq!(server.paths().iter().filter(|seen| *seen == path).count(), asked);
    }
}

#[tokio::test]
async fn too_many_limits_fail_for_good() {
    let mut run = Run::new(json!({"sources": [{"resolver": "r", "url": "http://example.org/"}]}));
    run.work.leased.limits = limits(&["a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7"]);
    let failure = failed(run.finish().await);
    assert_eq!(failure.class, ErrorClass::Validation);
    assert!(failure.message.contains("at most 8"), "{failure}");
}

#[tokio::test]
async fn bad_payloads_are_refused() {
    let good = json!([{"url": "http://example.org/"}]);
    let many: Vec<_> = (0..33).map(|_| good[0].clone()).collect();
    let hex = "a".repeat(64);
    assert_refused(
        &*plain("download"),
        vec![
            (json!(null), &["payload"]),
            (json!({}), &["payload.sources"]),
            (json!({"sources": []}), &["payload.sources"]),
            (json!({"sources": many}), &["payload.sources"]),
            (json!({"sources": [7]}), &["payload.sources[0]"]),
            (
                json!({"sources": [good[0], {"url": "x"}, {"uri": "y"}]}),
                &["payload.sources[1].url", "payload.sources[2].url", "payload.sources[2].uri"],
            ),
            (
                json!({"sources": [{"url": "http://example.org/", "resolver": ""}]}),
                &["payload.sources[0].resolver"],
            ),
            (
                json!({"sources": [{"url": "http://example.org/", "resolver": "*"}]}),
                &["payload.sources[0].resolver"],
            ),
            (json!({"sources": good, "to": ""}), &["payload.to"]),
            (json!({"sources": good, "to": "dir/"}), &["payload.to"]),
            (json!({"sources": good, "to": "../x"}), &["payload.to"]),
            (json!({"sources": good, "to": "a/../../x"}), &["payload.to"]),
            (json!({"sources": good, "to": "x".repeat(191)}), &["payload.to"]),
            (json!({"sources": good, "to": "a\0b"}), &["payload.to"]),
            (json!({"sources": good, "sha256": "abc"}), &["payload.sha256"]),
            (json!({"sources": good, "sha256": hex.replace('a', "g")}), &["payload.sha256"]),
            (json!({"sources": good, "max_size": "big"}), &["payload.max_size"]),
            (json!({"sources": good, "max_size": 0}), &["payload.max_size"]),
            (json!({"sources": good, "max_size": []}), &["payload.max_size"]),
            (json!({"sources": 1, "to": 1, "size": 1}), &["payload.sources", "payload.to", "payload.size"]),
        ],
    )
    .await;
    let fine = json!({"sources": good, "to": "/abs/x.pdf", "sha256": hex, "max_size": "100MB"});
    assert_eq!(plain("download").check(&Json::from(fine)), []);
}
