//! What a job says about the file that it wants.

use super::target::MAX_FILE_NAME;
use crate::builtin::client::web_url;
use crate::builtin::fields::{Fields, ROOT};
use orchestrator_core::human::parse_size;
use orchestrator_core::{FieldError, Json, Limits};
use reqwest::Url;
use serde::Deserialize;
use std::path::{Component, Path, PathBuf};

const MAX_SOURCES: usize = 32;

/// A checked payload.
#[derive(Debug)]
pub(super) struct Download {
    pub sources: Vec<Source>,
    pub to: Option<PathBuf>,
    /// In lower case.
    pub sha256: Option<String>,
    pub max_size: Option<u64>,
}

/// One place to ask.
#[derive(Debug)]
pub(super) struct Source {
    pub resolver: Option<String>,
    pub url: Url,
}

/// A number of bytes, or a size as people write it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a size such as 512, \"100MB\" or \"64KiB\"")]
enum Size {
    Bytes(u64),
    Text(String),
}

impl Download {
    pub fn parse(payload: &Json) -> Result<Download, Vec<FieldError>> {
        let mut fields = Fields::open(ROOT, payload);
        let sources = sources(&mut fields);
        let to = fields.optional::<String>("to");
        if let Some(problem) = to.as_deref().and_then(path_problem) {
            fields.problem("to", problem);
        }
        let sha256 = fields.optional::<String>("sha256").map(|text| text.to_ascii_lowercase());
        if sha256.as_ref().is_some_and(|hex| hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit())) {
            fields.problem("sha256", "must be 64 hexadecimal digits");
        }
        let max_size = match fields.optional::<Size>("max_size") {
            Some(Size::Bytes(bytes)) => Some(bytes),
            Some(Size::Text(text)) => match parse_size(&text) {
                Ok(bytes) => Some(bytes),
                Err(error) => {
                    fields.problem("max_size", error.to_string());
                    None
                }
            },
            None => None,
        };
        if max_size == Some(0) {
            fields.problem("max_size", "must be larger than zero");
        }
        let to = to.map(PathBuf::from);
        fields.finish(sources.map(|sources| Download { sources, to, sha256, max_size }))
    }
}

fn sources(fields: &mut Fields) -> Option<Vec<Source>> {
    let list = fields.required::<Vec<Json>>("sources")?;
    if list.is_empty() || list.len() > MAX_SOURCES {
        fields.problem("sources", format!("must list 1 to {MAX_SOURCES} sources, lists {}", list.len()));
        return None;
    }
    let mut sources = vec![];
    for (n, json) in list.iter().enumerate() {
        match source(&fields.path(&format!("sources[{n}]")), json) {
            Ok(source) => sources.push(source),
            Err(errors) => fields.extend(errors),
        }
    }
    Some(sources)
}

fn source(path: &str, json: &Json) -> Result<Source, Vec<FieldError>> {
    let mut fields = Fields::open(path, json);
    let resolver = fields.optional::<String>("resolver");
    let url = fields.required::<String>("url").and_then(|text| match web_url(&text) {
        Ok(url) => Some(url),
        Err(problem) => {
            fields.problem("url", problem);
            None
        }
    });
    let source = url.map(|url| Source { resolver, url });
    if let Some(source) = &source
        && let Err(failure) = super::limits(source, &source.url, &Limits::none())
    {
        let name = if source.resolver.is_some() { "resolver" } else { "url" };
        fields.problem(name, failure.message);
    }
    fields.finish(source)
}

fn path_problem(text: &str) -> Option<String> {
    let path = Path::new(text);
    let Some(name) = path.file_name() else {
        return Some("must name a file".to_owned());
    };
    if text.contains('\0') || text.ends_with('/') {
        return Some("must name a file".to_owned());
    }
    if name.len() > MAX_FILE_NAME {
        return Some(format!("the file name has {} bytes, at most {MAX_FILE_NAME} are possible", name.len()));
    }
    if path.is_relative() && path.components().any(|part| part == Component::ParentDir) {
        return Some("must not lead out of the download directory with ..".to_owned());
    }
    None
}
