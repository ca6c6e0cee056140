//! Flow files from their texts to their definitions.

mod arbitrary;
mod bounds;
mod corpus;
mod equal;
mod findings;
mod json;
mod places;
mod schema;

const YAML: &str = include_str!("flows/dataset.yaml");
const JSON: &str = include_str!("flows/dataset.json");
const TOML: &str = include_str!("flows/dataset.toml");
