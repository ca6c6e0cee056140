//! Limit keys and the rules that stand behind them.
//!
//! A task names the keys under which it runs (`resolver:unpaywall`, `host:example.org`); all of
//! them must have room at once. What a key allows is not the task's affair: rules are kept in the
//! store, exact ones (`host:example.org`) before defaults for a kind (`host:*`).

use crate::rate::Rate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The most keys that one task may stack.
pub const MAX_KEYS: usize = 8;
/// The longest key, in bytes.
pub const MAX_KEY_LEN: usize = 256;

/// One limit key, `kind:name`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey(Arc<str>);

impl LimitKey {
    /// Joins a kind and a name.
    pub fn new(kind: &str, name: &str) -> Result<Self, BadLimit> {
        format!("{kind}:{name}").parse()
    }

    /// The part before the colon.
    pub fn kind(&self) -> &str {
        self.0.split_once(':').map_or(&*self.0, |(kind, _)| kind)
    }

    /// The part after the colon.
    pub fn name(&self) -> &str {
        self.0.split_once(':').map_or("", |(_, name)| name)
    }

    /// The whole key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is a default for a kind (`host:*`) and not a key that a task may name.
    pub fn is_default(&self) -> bool {
        self.name() == "*"
    }

    /// The default that applies to this key.
    pub fn default_key(&self) -> LimitKey {
        LimitKey(format!("{}:*", self.kind()).into())
    }
}

impl fmt::Display for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for LimitKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no limit key, or too many of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLimit {
    /// Not `kind:name`.
    #[error(
        "{0:?} is not a limit key; write it as kind:name, such as host:example.org (at most {MAX_KEY_LEN} bytes, kind of a-z, 0-9, _ and -)"
    )]
    Key(String),
    /// Too many keys on one task.
    #[error("{0} limit keys on one task; at most {MAX_KEYS} can be stacked")]
    TooMany(usize),
}

impl FromStr for LimitKey {
    type Err = BadLimit;
    fn from_str(text: &str) -> Result<Self, BadLimit> {
        let bad = || BadLimit::Key(text.chars().take(80).collect());
        let (kind, name) = text.split_once(':').ok_or_else(bad)?;
        let kind_ok = !kind.is_empty()
            && kind.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !kind_ok || name.is_empty() || text.len() > MAX_KEY_LEN || name.chars().any(char::is_control) {
            return Err(bad());
        }
        Ok(LimitKey(text.into()))
    }
}

impl Serialize for LimitKey {
    fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for LimitKey {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The keys of one task: sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Limits(Vec<LimitKey>);

impl Limits {
    /// No limits.
    pub const fn none() -> Self {
        Limits(Vec::new())
    }

    /// Sorts and checks the keys.
    pub fn new(keys: impl IntoIterator<Item = LimitKey>) -> Result<Self, BadLimit> {
        let mut keys: Vec<_> = keys.into_iter().collect();
        if let Some(default) = keys.iter().find(|key| key.is_default()) {
            return Err(BadLimit::Key(default.to_string()));
        }
        keys.sort();
        keys.dedup();
        if keys.len() > MAX_KEYS { Err(BadLimit::TooMany(keys.len())) } else { Ok(Limits(keys)) }
    }

    /// The keys in order.
    pub fn keys(&self) -> &[LimitKey] {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether every key of `other` is here.
    pub fn covers(&self, other: &Limits) -> bool {
        other.0.iter().all(|key| self.0.binary_search(key).is_ok())
    }

    /// The keys of both.
    pub fn union(&self, other: &Limits) -> Result<Limits, BadLimit> {
        Limits::new(self.0.iter().chain(&other.0).cloned())
    }
}

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let keys = Vec::<LimitKey>::deserialize(input)?;
        if keys.len() > MAX_KEYS {
            return Err(serde::de::Error::custom(BadLimit::TooMany(keys.len())));
        }
        Limits::new(keys).map_err(serde::de::Error::custom)
    }
}

/// What a key allows. An absent part is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
// A slip in a name must not lift a limit.
#[serde(deny_unknown_fields)]
pub struct LimitRule {
    /// How many may run at once. Zero stops the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// How many may start per span.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl LimitRule {
    /// At most so many at once.
    pub fn at_most(concurrency: u32) -> Self {
        LimitRule { concurrency: Some(concurrency), rate: None }
    }
}

/// All rules, looked up by key: the exact one, else the default of its kind, else no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitBook(BTreeMap<LimitKey, LimitRule>);

impl LimitBook {
    /// An empty book: nothing is limited.
    pub fn new() -> Self {
        LimitBook::default()
    }

    /// Writes a rule, or strikes it with `None`.
    pub fn set(&mut self, key: LimitKey, rule: Option<LimitRule>) {
        match rule {
            Some(rule) => self.0.insert(key, rule),
            None => self.0.remove(&key),
        };
    }

    /// The rule for a key.
    pub fn rule(&self, key: &LimitKey) -> LimitRule {
        self.0.get(key).or_else(|| self.0.get(&key.default_key())).copied().unwrap_or_default()
    }

    /// Every rule that was written, in order of its key.
    pub fn iter(&self) -> impl Iterator<Item = (&LimitKey, &LimitRule)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> LimitKey {
        text.parse().unwrap()
    }

    #[test]
    fn the_exact_rule_wins_over_the_default() {
        let mut book = LimitBook::new();
        book.set(key("host:*"), Some(LimitRule::at_most(4)));
        book.set(key("host:slow.example"), Some(LimitRule::at_most(1)));
        assert_eq!(book.rule(&key("host:slow.example")).concurrency, Some(1));
        assert_eq!(book.rule(&key("host:other.example")).concurrency, Some(4));
        assert_eq!(book.rule(&key("resolver:x")).concurrency, None);
        book.set(key("host:slow.example"), None);
        assert_eq!(book.rule(&key("host:slow.example")).concurrency, Some(4));
    }

    #[test]
    fn keys_are_sorted_and_stand_once() {
        let limits = Limits::new([key("resolver:a"), key("host:b"), key("resolver:a")]).unwrap();
        assert_eq!(limits.keys(), [key("host:b"), key("resolver:a")]);
        assert!(limits.covers(&Limits::new([key("host:b")]).unwrap()));
        assert!(!limits.covers(&Limits::new([key("host:c")]).unwrap()));
    }

    #[test]
    fn bad_keys_are_refused() {
        for text in ["", "host", "host:", ":x", "Host:x", "host:a\nb", &format!("host:{}", "x".repeat(300))] {
            assert!(text.parse::<LimitKey>().is_err(), "{text:?}");
        }
        assert!(Limits::new([key("host:*")]).is_err(), "a task cannot run under a default");
        let many = (0..9).map(|n| key(&format!("k:{n}")));
        assert_eq!(Limits::new(many), Err(BadLimit::TooMany(9)));
        let same = serde_json::to_string(&["k:1"; 9]).unwrap();
        assert!(serde_json::from_str::<Limits>(&same).is_err(), "also where it is the same nine times");
        assert!(serde_json::from_str::<LimitRule>(r#"{"concurency": 4}"#).is_err(), "a slip is not no limit");
    }
}
