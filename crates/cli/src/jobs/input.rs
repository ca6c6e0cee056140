//! The input of a job as flags give it: JSON, a file, stdin, single fields.

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use clap::Args;
use orchestrator_core::Json;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;

/// The flags.
#[derive(Clone, Debug, Default, Args)]
pub struct InputArgs {
    /// The input: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub input: Option<String>,
    /// One field of the input; may be repeated. The value is JSON, or else a text
    #[arg(long, value_name = "NAME=VALUE", value_parser = field)]
    pub input_field: Vec<(String, Value)>,
}

fn field(text: &str) -> Result<(String, Value), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            Ok((name.to_owned(), value))
        }
        _ => Err("write it as name=value, such as source=https://example.org".to_owned()),
    }
}

impl InputArgs {
    /// Whether any was given.
    pub fn is_given(&self) -> bool {
        self.input.is_some() || !self.input_field.is_empty()
    }

    /// The input: `base`, or what was given instead, with the fields set. Never more than one byte
    /// over `max` is read.
    pub fn read(&self, base: Option<&Json>, max: usize) -> CliResult<Json> {
        let given = self.input.as_deref().map(|input| read(input, max)).transpose()?;
        let whole = given.as_ref().or(base);
        if self.input_field.is_empty() {
            return Ok(whole.cloned().unwrap_or_else(Json::null));
        }
        let mut fields = match whole.map(Json::value).unwrap_or(Value::Null) {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            _ => return Err(CliError::usage("--input-field needs an input that is an object")),
        };
        fields.extend(self.input_field.iter().cloned());
        Ok(Value::Object(fields).into())
    }
}

fn read(input: &str, max: usize) -> CliResult<Json> {
    let (text, place) = match (input, input.strip_prefix('@')) {
        ("-", _) => (read_all(std::io::stdin().lock(), Path::new("stdin"), max)?, "stdin".to_owned()),
        (_, Some(path)) => {
            let path = Path::new(path);
            let file = std::fs::File::open(path).map_err(|error| CliError::io(path, &error))?;
            (read_all(file, path, max)?, path.display().to_string())
        }
        (text, None) => (text.to_owned(), "--input".to_owned()),
    };
    parse(&text, &place)
}

/// Reads JSON that stands at a place.
pub fn parse(text: &str, place: &str) -> CliResult<Json> {
    Json::parse(text.trim()).map_err(|error| {
        CliError::new(Exit::Usage, "broken_json", format!("the input is not JSON: {error}"))
            .at(place)
            .hint("quote it for the shell: --input '{\"n\": 3}', use --input @FILE, or --input-field n=3")
    })
}

fn read_all(from: impl Read, path: &Path, max: usize) -> CliResult<String> {
    let mut text = String::new();
    from.take(max as u64 + 1).read_to_string(&mut text).map_err(|error| CliError::io(path, &error))?;
    if text.len() > max {
        return Err(CliError::usage("the input is over the limit")
            .at(path.display().to_string())
            .hint("pass a reference instead of the data; queue.max_payload sets the limit"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(input: Option<&str>, fields: &[&str]) -> InputArgs {
        InputArgs {
            input: input.map(str::to_owned),
            input_field: fields.iter().map(|text| field(text).unwrap()).collect(),
        }
    }

    #[test]
    fn fields_are_set_on_top_of_what_is_there() {
        let base = Json::parse(r#"{"a":1,"b":2}"#).unwrap();
        for (args, text) in [
            (given(None, &[]), r#"{"a":1,"b":2}"#),
            (given(None, &["b=x", "c=[1]"]), r#"{"a":1,"b":"x","c":[1]}"#),
            (given(Some("{}"), &["n=3"]), r#"{"n":3}"#),
            (given(Some("[1]"), &[]), "[1]"),
        ] {
            assert_eq!(args.read(Some(&base), 1000).unwrap().as_str(), text);
        }
        assert_eq!(given(None, &[]).read(None, 10).unwrap(), Json::null());
        assert_eq!(given(None, &["n=3"]).read(None, 10).unwrap().as_str(), r#"{"n":3}"#);
    }

    #[test]
    fn what_is_no_input_is_told() {
        assert!(given(Some("{n: 3}"), &[]).read(None, 100).unwrap_err().what.contains("not JSON"));
        assert!(given(Some("[1]"), &["n=3"]).read(None, 100).unwrap_err().what.contains("an object"));
        assert_eq!(given(Some("@no/such.json"), &[]).read(None, 100).unwrap_err().exit, Exit::NotFound);
        assert!(field("=3").is_err() && field("n").is_err());
    }
}
