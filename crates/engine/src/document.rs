//! A document inside of JSON, where its content stands as base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orchestrator_core::Document;
use serde::{Deserialize, Serialize};

/// A document as it is written in the fields of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct DocumentFields {
    /// Its name.
    pub name: String,
    /// What it is, such as `application/pdf`.
    pub media_type: String,
    /// Its content, as base64 with padding.
    pub content: String,
}

impl DocumentFields {
    /// Writes a document.
    pub fn of(document: &Document) -> Self {
        DocumentFields {
            name: document.name().to_string(),
            media_type: document.media_type().to_string(),
            content: STANDARD.encode(document.content()),
        }
    }

    /// Reads the document, or says what is wrong with its content.
    pub fn read(self) -> Result<Document, String> {
        let content = STANDARD.decode(&self.content).map_err(|error| format!("is not base64: {error}"))?;
        Ok(Document::new(self.name, self.media_type, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_reads_back() {
        let document = Document::new("a.bin", "application/octet-stream", [0, 1, 254, 255]);
        let written = DocumentFields::of(&document);
        assert_eq!(written.content, "AAH+/w==");
        assert_eq!(written.clone().read().unwrap(), document);
        let broken = DocumentFields { content: "%".to_owned(), ..written };
        assert!(broken.read().unwrap_err().starts_with("is not base64"));
    }
}
