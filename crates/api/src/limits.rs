//! Limits.

use orchestrator_core::{Json, LimitKey, LimitRule};
use orchestrator_store::LimitView;
use serde::{Deserialize, Serialize};

/// Every rule and every key in use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitList {
    /// In order.
    pub limits: Vec<LimitView>,
}

/// Changes of rules that are made together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitChanges {
    /// In this order.
    pub changes: Vec<LimitChangeFields>,
}

/// One change of a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LimitChangeFields {
    /// The key, or a default such as `host:*`.
    pub key: LimitKey,
    /// The rule; null strikes it.
    #[serde(default, deserialize_with = "object")]
    pub rule: Option<LimitRule>,
}

/// Reads an object or null. A list would be taken for one else, field by field.
fn object<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    match Option::<Json>::deserialize(input)? {
        None => Ok(None),
        Some(json) if json.as_str().starts_with('{') => {
            json.read().map(Some).map_err(serde::de::Error::custom)
        }
        Some(_) => Err(serde::de::Error::custom("must be an object or null")),
    }
}
