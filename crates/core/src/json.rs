//! JSON text that is carried, not looked into.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A valid JSON document as text. Payloads and results pass through the hot path untouched: they
/// are checked once at the edge and parsed only by who needs the value.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The JSON `null`.
    pub fn null() -> Self {
        Json(Arc::from("null"))
    }

    /// How deep a document may nest. Readers of JSON give up at 128 levels, and tasks wrap what they get.
    pub const MAX_DEPTH: usize = 100;

    /// Checks that `text` is one JSON document, and not nested deeper than [`Json::MAX_DEPTH`].
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        serde_json::from_str::<serde::de::IgnoredAny>(&text)?;
        let json = Json(text);
        if json.is_too_deep() {
            return Err(serde::de::Error::custom(format!("nested deeper than {} levels", Json::MAX_DEPTH)));
        }
        Ok(json)
    }

    /// Whether it nests deeper than [`Json::MAX_DEPTH`], so that a reader may refuse it.
    pub fn is_too_deep(&self) -> bool {
        // Hardly any document has so many brackets, and counting them is far cheaper than following them.
        if self.0.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() <= Json::MAX_DEPTH {
            return false;
        }
        let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
        self.0.bytes().any(|byte| {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = in_text,
                b'"' => in_text = !in_text,
                b'[' | b'{' if !in_text => depth += 1,
                b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth > Json::MAX_DEPTH
        })
    }

    /// Takes `text` that was checked before it was stored.
    pub fn trusted(text: impl Into<Arc<str>>) -> Self {
        Json(text.into())
    }

    /// Serialises a value.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_string(value).map(|text| Json(text.into()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Size of the text in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Reads the document into a type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The document as a value.
    pub fn value(&self) -> serde_json::Value {
        self.read().unwrap_or(serde_json::Value::Null)
    }

    /// Whether both say the same, whatever their white space and the order of their fields.
    pub fn same_value(&self, other: &Json) -> bool {
        self.0 == other.0 || self.value() == other.value()
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Json(value.to_string().into())
    }
}

impl Default for Json {
    fn default() -> Self {
        Json::null()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let raw: &serde_json::value::RawValue =
            serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let raw = Box::<serde_json::value::RawValue>::deserialize(input)?;
        Ok(Json(Arc::from(raw.get())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_value_looks_past_white_space_and_field_order() {
        let a = Json::parse(r#"{"a":1,"b":[1,2]}"#).unwrap();
        let b = Json::parse(r#"{ "b": [1, 2], "a": 1 }"#).unwrap();
        let c = Json::parse(r#"{"a":1,"b":[2,1]}"#).unwrap();
        assert!(a.same_value(&b));
        assert!(!a.same_value(&c));
    }

    #[test]
    fn broken_json_is_refused_with_its_place() {
        let error = Json::parse("{\"a\": }").unwrap_err().to_string();
        assert!(error.contains("line 1 column 7"), "{error}");
    }

    #[test]
    fn what_nests_too_deep_is_refused_and_all_else_can_be_read() {
        let nested = |open: &str, close: &str, depth: usize| open.repeat(depth) + "1" + &close.repeat(depth);
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[\"]\\\"}\",", "]")] {
            let deepest = Json::parse(nested(open, close, Json::MAX_DEPTH)).unwrap();
            assert_ne!(deepest.value(), serde_json::Value::Null);
            for depth in [101, 128, 100_000] {
                let error = Json::parse(nested(open, close, depth)).unwrap_err().to_string();
                assert_eq!(error, "nested deeper than 100 levels");
            }
        }
        // What stands in a text, or beside each other, does not nest.
        for flat in [format!("\"{}\"", "[{".repeat(200)), format!("[{}1]", "[[]],".repeat(200))] {
            assert!(Json::parse(flat).is_ok());
        }
        assert!(Json::parse("[".repeat(200)).unwrap_err().to_string().starts_with("EOF"));
    }

    #[test]
    fn json_nests_in_other_documents_unchanged() {
        let outer = serde_json::to_string(&vec![Json::parse("{\"x\":1.50}").unwrap()]).unwrap();
        assert_eq!(outer, "[{\"x\":1.50}]");
        assert_eq!(serde_json::from_str::<Vec<Json>>(&outer).unwrap()[0].as_str(), "{\"x\":1.50}");
    }
}
