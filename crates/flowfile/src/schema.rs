//! The JSON Schema of flow files, for editors.

use serde_json::Value;

/// The flow format as JSON Schema (draft 2020-12).
pub fn json_schema() -> Value {
    // The text is part of the program, and the tests read it.
    serde_json::from_str(include_str!("../flow.schema.json")).expect("flow.schema.json is JSON")
}
