//! The configuration as text: the commented default file, what is in force, and a JSON Schema.

use super::settings::{Kind, SETTINGS, Setting};
use super::{Loaded, value};
use orchestrator_core::LimitRule;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The default file: every setting with its meaning, its variables and its default.
pub fn default_file() -> String {
    let mut text = String::from(
        "# Every setting of orchestrator with its default. Flags win over the environment, which wins\n\
         # over this file. Spans read as 500ms, 30s, 5m, 24h; sizes as 64KB, 10MB, 64KiB.\n",
    );
    let mut section = "";
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            let _ = write!(text, "\n[{section}]\n");
        }
        let _ = writeln!(text, "# {} ({})", setting.doc, setting.env.join(", "));
        let _ = writeln!(text, "{} = {}", setting.name(), toml_value(setting, setting.default));
    }
    text.push_str(
        "\n# Rules for single limit keys; kind:* is the default of a kind. Changeable while jobs run with\n\
         # `orchestrator limits set`.\n[limits]\n\
         # \"host:example.org\" = { concurrency = 2, rate = \"10/s burst 5\" }\n",
    );
    text
}

/// The reference page of the settings.
#[cfg(test)]
pub fn reference() -> String {
    let mut text = String::from(
        "# Configuration\n\n\
         Generated from the table in `crates/cli/src/config/settings.rs`; `UPDATE_DOCS=1 cargo test -p orchestrator` \
         writes it anew.\n\n\
         Defaults, then `orchestrator.toml` (or `--config FILE`, or `ORCHESTRATOR_CONFIG`), then the environment, then \
         flags: the later wins. `orchestrator config check` tells everything that is wrong at once, `config show \
         --origins` where each value came from, and `config show --default` writes a file to start from. Spans read as \
         `500ms`, `30s`, `5m`, `24h` or a number of seconds, sizes as `64KB`, `10MB`, `64KiB` or a number of bytes.\n",
    );
    let mut section = "";
    for setting in SETTINGS {
        if setting.section() != section {
            section = setting.section();
            let heading = "| setting | default | environment | meaning |\n| --- | --- | --- | --- |";
            let _ = write!(text, "\n## [{section}]\n\n{heading}\n");
        }
        let env: Vec<_> = setting.env.iter().map(|name| format!("`{name}`")).collect();
        let (name, default) = (setting.name(), toml_value(setting, setting.default));
        let _ = writeln!(text, "| `{name}` | `{default}` | {} | {} |", env.join(", "), setting.doc);
    }
    text.push_str(
        "\n## [limits]\n\nRules for single limit keys, `kind:name`; `kind:*` is the default of a kind. A rule here that \
         gives only a rate keeps the number of its kind. `orchestrator limits set` changes rules while jobs run; what it \
         sets stays until `limits clear`.\n\n\
         ```toml\n[limits]\n\"host:example.org\" = { concurrency = 2, rate = \"10/s burst 5\" }\n```\n",
    );
    let _ = write!(
        text,
        "\n## Changes while it runs\n\nOn SIGHUP `serve`, `dev` and `worker` read file and environment anew and take up {}. All else holds \
         from the next start on, which is said of each setting that has changed. Where anything is wrong, everything that is wrong is \
         told, and the old configuration stays in force.\n\n\
         `RUST_LOG`, `-q` and `-v` stand above `log.level`, also then. A worker of a server (`worker --server`) takes up `log.level` \
         only: the rest is the server's.\n",
        crate::reload::DOC
    );
    text
}

/// What is in force, as a file; with `origins`, each line says where its value came from.
pub fn effective_file(loaded: &Loaded, origins: bool) -> String {
    let mut lines: Vec<(String, String)> = vec![];
    let mut section = "";
    for (setting, shown, origin) in &loaded.effective {
        if setting.section() != section {
            if !section.is_empty() {
                lines.push(Default::default());
            }
            section = setting.section();
            lines.push((format!("[{section}]"), String::new()));
        }
        lines.push((format!("{} = {}", setting.name(), toml_value(setting, shown)), origin.to_string()));
    }
    if !loaded.config.limits.is_empty() {
        lines.push(Default::default());
        lines.push(("[limits]".to_owned(), String::new()));
    }
    for (key, rule) in &loaded.config.limits {
        let origin = loaded.limit_origins.get(key).map(ToString::to_string).unwrap_or_default();
        lines.push((format!("{} = {}", quoted(key.as_str()), toml_rule(rule)), origin));
    }
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (line, origin) in lines {
        let _ = match origins && !origin.is_empty() {
            true => writeln!(text, "{line:width$}  # {origin}"),
            false => writeln!(text, "{line}"),
        };
    }
    text
}

/// What is in force, as JSON: nested values, or with `origins` one entry per setting.
pub fn effective_json(loaded: &Loaded, origins: bool) -> Value {
    if origins {
        let settings = loaded.effective.iter().map(|(setting, shown, origin)| {
            json!({ "key": setting.key, "value": json_value(setting, shown), "origin": origin.to_string(), "env": setting.env })
        });
        let limits = loaded.config.limits.iter().map(|(key, rule)| {
            let origin = loaded.limit_origins.get(key).map(ToString::to_string);
            json!({ "key": format!("limits.{key}"), "value": json_rule(rule), "origin": origin, "env": [] })
        });
        return Value::Array(settings.chain(limits).collect());
    }
    let mut root = Map::new();
    for (setting, shown, _) in &loaded.effective {
        let section = root.entry(setting.section()).or_insert_with(|| json!({}));
        section[setting.name()] = json_value(setting, shown);
    }
    let limits = loaded.config.limits.iter().map(|(key, rule)| (key.to_string(), json_rule(rule)));
    root.insert("limits".to_owned(), Value::Object(limits.collect()));
    Value::Object(root)
}

/// A JSON Schema of the file, for editors.
pub fn schema() -> Value {
    let mut sections = Map::new();
    for setting in SETTINGS {
        let types = match setting.kind {
            Kind::Number => json!("integer"),
            Kind::Span | Kind::Size => json!(["string", "integer"]),
            Kind::Text => json!("string"),
            Kind::Caps => json!(["integer", "string", "object"]),
        };
        let section = sections
            .entry(setting.section())
            .or_insert_with(|| json!({ "type": "object", "additionalProperties": false, "properties": {} }));
        section["properties"][setting.name()] = json!({
            "type": types,
            "description": setting.doc,
            "default": json_value(setting, setting.default),
        });
    }
    let rule = json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "concurrency": { "type": "integer", "minimum": 0 }, "rate": { "type": "string" } },
    });
    sections.insert("limits".to_owned(), json!({ "type": "object", "additionalProperties": rule }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "orchestrator.toml",
        "type": "object",
        "additionalProperties": false,
        "properties": sections,
    })
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn toml_value(setting: &Setting, shown: &str) -> String {
    match setting.kind {
        Kind::Number => shown.to_owned(),
        Kind::Caps => match value::caps(shown, 0) {
            Ok(caps) if !caps.named.is_empty() => {
                let named: String =
                    caps.named.iter().map(|(name, cap)| format!(", {} = {cap}", quoted(name))).collect();
                format!("{{ \"*\" = {}{named} }}", caps.default)
            }
            _ => shown.to_owned(),
        },
        Kind::Span | Kind::Size | Kind::Text => quoted(shown),
    }
}

fn json_value(setting: &Setting, shown: &str) -> Value {
    match setting.kind {
        Kind::Number => shown.parse::<u64>().map_or_else(|_| json!(shown), |number| json!(number)),
        Kind::Caps => match value::caps(shown, 0) {
            Ok(caps) if caps.named.is_empty() => json!(caps.default),
            Ok(caps) => {
                let all = caps.named.into_iter().chain([("*".to_owned(), caps.default)]);
                Value::Object(all.map(|(name, cap)| (name, json!(cap))).collect())
            }
            Err(_) => json!(shown),
        },
        Kind::Span | Kind::Size | Kind::Text => json!(shown),
    }
}

fn toml_rule(rule: &LimitRule) -> String {
    let concurrency = rule.concurrency.map(|cap| format!("concurrency = {cap}"));
    let rate = rule.rate.map(|rate| format!("rate = {}", quoted(&rate.to_string())));
    format!("{{ {} }}", [concurrency, rate].into_iter().flatten().collect::<Vec<_>>().join(", "))
}

/// A rule as JSON, the rate as it is written.
pub fn json_rule(rule: &LimitRule) -> Value {
    json!({ "concurrency": rule.concurrency, "rate": rule.rate.map(|rate| rate.to_string()) })
}
