//! The description of the API is whole, committed, and served.

use crate::world::World;
use axum::http::StatusCode;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// The committed document.
const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");

#[test]
fn the_committed_document_is_that_of_the_code() {
    let now = serde_json::to_string_pretty(&orchestrator_server::openapi()).unwrap() + "\n";
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(COMMITTED, &now).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap_or_default();
    assert!(
        committed == now,
        "docs/reference/openapi.json is not what the code says:\n{}\nIf it is meant so, renew it:\n    \
         UPDATE_OPENAPI=1 cargo test -p orchestrator-server openapi\n",
        difference(&committed, &now)
    );
}

/// The lines from the first to the last that differ, with what stands before them.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let before = same(&mut old.iter().zip(&new));
    let after = same(&mut old[before..].iter().rev().zip(new[before..].iter().rev()));
    let shown = |lines: &[&str], sign: &str| -> String {
        let some = lines.iter().take(40).map(|line| format!("{sign}{line}\n")).collect::<String>();
        if lines.len() > 40 { format!("{some}{sign}... {} lines more\n", lines.len() - 40) } else { some }
    };
    let context = shown(&new[before.saturating_sub(5)..before], "  ");
    let (gone, come) = (&old[before..old.len() - after], &new[before..new.len() - after]);
    format!("line {}:\n{context}{}{}", before + 1, shown(gone, "- "), shown(come, "+ "))
}

fn operations(document: &Value) -> Vec<(String, &Map<String, Value>)> {
    let paths = document["paths"].as_object().unwrap();
    let each = |(path, item): (&String, &'static str)| format!("{} {path}", item.to_uppercase());
    let mut found = vec![];
    for (path, item) in paths {
        for method in ["get", "put", "post", "delete", "patch"] {
            if let Some(operation) = item.get(method).and_then(Value::as_object) {
                found.push((each((path, method)), operation));
            }
        }
    }
    found
}

#[test]
fn every_operation_says_what_people_and_programs_need() {
    let document = orchestrator_server::openapi();
    assert_eq!(document["openapi"], "3.1.0");
    let tags: BTreeSet<_> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{name}: the operation id {id} stands twice");
        let summary = operation.get("summary").and_then(Value::as_str).unwrap_or_default();
        assert!(!summary.is_empty() && !summary.ends_with('.'), "{name}: a summary is a title: {summary:?}");
        let of = operation["tags"].as_array().unwrap();
        assert!(of.len() == 1 && tags.contains(of[0].as_str().unwrap()), "{name}: {of:?}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{name}: how does it go well?");
        for (status, response) in responses {
            let told = response.get("$ref").is_some() || response["headers"].get("X-Request-Id").is_some();
            assert!(told, "{name}: {status} has no request id");
        }
        for parameter in operation.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{name}: what is {}?", parameter["name"]);
        }
        if let Some(body) = operation.get("requestBody") {
            let json = &body["content"]["application/json"];
            assert!(json.get("example").or(json.get("examples")).is_some(), "{name}: show a body");
            for status in ["400", "408", "413", "415", "422"] {
                assert!(responses.contains_key(status), "{name}: a body may be refused with {status}");
            }
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let document = orchestrator_server::openapi();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in found {
        let there = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(there.is_some(), "{reference} is not there");
    }
}

/// `routes!` takes a handler with its description; `route` would take one without.
#[test]
fn no_route_goes_without_a_description() {
    fn look(dir: &Path) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                look(&path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for way in [".route(", ".route_service(", ".nest_service(", "axum::routing"] {
                assert!(
                    !text.contains(way),
                    "{}: describe it and add it with routes!, not {way}",
                    path.display()
                );
            }
        }
    }
    look(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
}

#[tokio::test]
async fn the_document_and_its_page_are_served() {
    let world = World::new().await;
    let served = world.get("/openapi.json").await;
    assert_eq!((served.status, &served.body), (StatusCode::OK, &orchestrator_server::openapi()));
    for (path, media_type) in
        [("/docs", "text/html"), ("/docs/docs.js", "text/javascript"), ("/docs/docs.css", "text/css")]
    {
        let (headers, body) = world.download(path).await;
        assert_eq!(headers["content-type"], format!("{media_type}; charset=utf-8").as_str());
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        let text = std::str::from_utf8(&body).unwrap();
        // Nothing from elsewhere, and nothing that the policy would refuse.
        for foreign in
            ["http://", "https://", "<script>", "<style", "style=\"", " onclick=", "innerHTML", "eval("]
        {
            assert!(!text.contains(foreign), "{path} has {foreign}");
        }
    }
}
