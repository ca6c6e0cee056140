//! The log as JSON: every line is one, and says whose it is.

use super::server::Server;
use crate::support::{Place, until};
use serde_json::{Value, json};

#[test]
fn every_line_is_json_and_attempts_carry_the_ids_of_their_job() {
    let place = Place::new();
    let config = "[log]\nformat = \"json\"\nlevel = \"debug\"\n[server]\nmetrics_listen = \"\"\n";
    let mut server = Server::start(&place, config, &["--workers"]);
    let headers = [("x-correlation-id", "order-7"), ("x-request-id", "r-1")];
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [&headers[..], &[("traceparent", parent.as_str())]].concat();
    let job = server.run(&headers, &json!({ "handler": "sleep", "payload": { "for": "1ms" } }));
    let id = job["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get("/nothing%0d%0a?secret=canary").status, 404);
    until("the attempt to be told of", || server.running.log().contains("attempt ended"));
    server.stop();
    let log = server.running.log();
    assert!(!log.contains("canary"), "a query stands in the log");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    for line in &lines {
        let moment = line["timestamp"].as_str().unwrap();
        assert!(moment.parse::<jiff::Timestamp>().is_ok(), "{line}");
        assert!(["level", "target", "message"].iter().all(|field| line[field].is_string()), "{line}");
        assert!(line.as_object().unwrap().values().all(|value| !value.is_object()), "flat: {line}");
    }
    let attempt: Vec<_> = lines.iter().filter(|line| line["job"] == id.as_str()).collect();
    assert!(attempt.iter().any(|line| line["message"] == "attempt started"), "{log}");
    let ended = attempt.iter().find(|line| line["message"] == "attempt ended").unwrap();
    assert_eq!(
        (&ended["outcome"], &ended["task"], &ended["attempt"]),
        (&"completed".into(), &"main".into(), &1.into())
    );
    assert!(
        attempt.iter().all(|line| line["correlation_id"] == "order-7" && line["trace_id"] == trace),
        "{log}"
    );
    let answered =
        lines.iter().find(|line| line["request_id"] == "r-1" && line["message"] == "answered").unwrap();
    assert_eq!((&answered["status"], &answered["correlation_id"]), (&200.into(), &"order-7".into()));
    assert_eq!((&answered["path"], &answered["trace_id"]), (&"/jobs".into(), &trace.into()));
}
