//! A flow file: read, and on request checked as a whole.

use crate::format::{Format, MAX_TEXT, parse};
use crate::lines::Lines;
use crate::report::{Finding, Report};
use orchestrator_core::flow::document::Span;
use orchestrator_core::flow::{FlowDef, Node, Plan, read};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// A file whose syntax and form are right.
#[derive(Clone, Debug)]
pub struct FlowFile {
    name: String,
    document: Node,
    def: FlowDef,
}

impl FlowFile {
    /// Reads a file, in the format that its name or else its text tells.
    pub fn load(path: &Path) -> Result<FlowFile, Report> {
        let name = path.display().to_string();
        let bytes = bytes(path).map_err(|message| Finding::new(&name, None, String::new(), message))?;
        let text = match str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
                let at = Lines::new(&valid).span(valid.len());
                let message = "the text is not UTF-8 from here on; save the file as UTF-8";
                return Err(Finding::new(&name, Some(at), String::new(), message).into());
            }
        };
        FlowFile::from_text(name, text, Format::of_path(path).unwrap_or_else(|| Format::guess(text)))
    }

    /// Reads a text; `name` is what findings call it.
    pub fn from_text(name: impl Into<String>, text: &str, format: Format) -> Result<FlowFile, Report> {
        let name = name.into();
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            let message = "the file is empty; a flow starts with its name (flow) and has tasks";
            let at = Some(Span { line: 1, column: 1 });
            return Err(Finding::new(&name, at, String::new(), message).into());
        }
        let document = parse(text, format).map_err(|error| Report::of_syntax(&name, error))?;
        match read::read(&document) {
            Ok(def) => Ok(FlowFile { name, document, def }),
            Err(form) => {
                // With what is wrong with the rest as a whole, so that one look mends it all.
                let problems = read::compile(&document).err().unwrap_or(form);
                Err(Report::of_problems(&name, &document, &problems))
            }
        }
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The definition.
    pub fn definition(&self) -> &FlowDef {
        &self.def
    }

    /// Checks the flow as a whole and makes it runnable; what is wrong is told by its place in the file.
    pub fn plan(&self) -> Result<Plan, Report> {
        Plan::compile(self.def.clone())
            .map_err(|problems| Report::of_problems(&self.name, &self.document, &problems))
    }
}

impl From<FlowFile> for FlowDef {
    fn from(file: FlowFile) -> FlowDef {
        file.def
    }
}

/// The bytes of a file, never more than a flow may have.
fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => {
            "there is no such file; give the path of a flow in YAML, JSON or TOML".to_owned()
        }
        ErrorKind::IsADirectory => "is a directory; give the path of a file in it".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let mut bytes = vec![];
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MAX_TEXT {
        return Err(format!("the file has more than {MAX_TEXT} bytes; a flow may not be larger"));
    }
    Ok(bytes)
}
