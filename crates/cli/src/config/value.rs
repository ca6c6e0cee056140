//! How a setting's text becomes a value. Each reader says what is wrong in a few words, to stand
//! behind the place where the text was found.

use orchestrator_core::{LimitKey, Millis, human};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

/// Reads a whole number in a range.
pub fn number<T: TryFrom<u64>>(text: &str, range: RangeInclusive<u64>) -> Result<T, String> {
    let number: u64 = text.trim().parse().map_err(|_| match text.trim().parse::<i128>() {
        Ok(_) => bounds(&range),
        Err(_) => "not a number".to_owned(),
    })?;
    if !range.contains(&number) {
        return Err(bounds(&range));
    }
    T::try_from(number).map_err(|_| bounds(&range))
}

fn bounds(range: &RangeInclusive<u64>) -> String {
    if *range.end() == u64::MAX || *range.end() == u64::from(u32::MAX) {
        format!("must be >= {}", range.start())
    } else {
        format!("must be {} to {}", range.start(), range.end())
    }
}

/// Reads a span of time that is longer than zero.
pub fn span(text: &str) -> Result<Millis, String> {
    match human::parse_span(text) {
        Ok(Millis(0)) => Err("must be longer than zero".to_owned()),
        Ok(span) => Ok(span),
        Err(_) => Err("not a span of time; write it as 500ms, 30s, 5m or 24h".to_owned()),
    }
}

/// How long something is kept: for a span, or for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep(pub Option<Millis>);

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(span) => span.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// On or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switch(pub bool);

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "on" } else { "off" })
    }
}

/// Reads on or off, also as other programs write it.
pub fn switch(text: &str) -> Result<Switch, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" => Ok(Switch(true)),
        "off" | "false" | "0" | "no" => Ok(Switch(false)),
        _ => Err("must be on or off".to_owned()),
    }
}

/// Reads an address to listen on: a host with a port, a port of this machine, or nothing.
pub fn address(text: &str) -> Result<String, String> {
    let text = text.trim();
    let port = text.rsplit_once(':').map_or(text, |(_, port)| port);
    match (port.parse::<u16>(), text.contains(':')) {
        (Ok(_), true) => Ok(text.to_owned()),
        (Ok(_), false) => Ok(format!("127.0.0.1:{text}")),
        (Err(_), _) if text.is_empty() => Ok(String::new()),
        (Err(_), true) => Err("not an address; write it as 127.0.0.1:9090".to_owned()),
        (Err(_), false) => Err("not a port".to_owned()),
    }
}

/// Reads the address of a web service, or nothing.
pub fn web(text: &str) -> Result<String, String> {
    let text = text.trim();
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    if text.is_empty() || host.is_some_and(|host| !host.is_empty()) {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("must begin with http:// or https://".to_owned())
    }
}

/// Reads how long something is kept.
pub fn keep(text: &str) -> Result<Keep, String> {
    if text.trim().eq_ignore_ascii_case("off") {
        return Ok(Keep(None));
    }
    match span(text) {
        Ok(span) => Ok(Keep(Some(span))),
        Err(_) => Err("not a span of time longer than zero, nor off; write it as 12h, 30d or off".to_owned()),
    }
}

/// A size in bytes that writes itself in the largest unit that says it exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 6] = [
            ("GiB", 1 << 30),
            ("GB", 1_000_000_000),
            ("MiB", 1 << 20),
            ("MB", 1_000_000),
            ("KiB", 1 << 10),
            ("KB", 1000),
        ];
        match UNITS.iter().find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale)) {
            Some((unit, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}

/// Reads a size that is larger than zero.
pub fn size(text: &str) -> Result<Size, String> {
    match human::parse_size(text) {
        Ok(0) => Err("must be larger than zero".to_owned()),
        Ok(bytes) => Ok(Size(bytes)),
        Err(_) => Err("not a size; write it as 512, 64KB, 10MB or 64KiB".to_owned()),
    }
}

/// Reads a text that is not empty.
pub fn text(text: &str) -> Result<String, String> {
    if text.trim().is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// Reads one of a few words.
pub fn word(text: &str, words: &[&str]) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    if words.contains(&text.as_str()) {
        Ok(text)
    } else {
        Err(format!("must be one of {}", words.join(", ")))
    }
}

/// How many may run at once for each name of a kind: a default, and names with a number of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// For names that are not listed.
    pub default: u32,
    /// For these.
    pub named: BTreeMap<String, u32>,
}

/// Written so that [`caps`] reads back the same.
impl fmt::Display for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |name: &String| !name.contains([',', '=']) && name.trim() == name;
        if self.named.keys().all(plain) {
            write!(f, "{}", self.default)?;
            return self.named.iter().try_for_each(|(name, cap)| write!(f, ", {name}={cap}"));
        }
        let default = ("*", self.default);
        let all: BTreeMap<&str, u32> =
            self.named.iter().map(|(name, cap)| (name.as_str(), *cap)).chain([default]).collect();
        f.write_str(&serde_json::to_string(&all).map_err(|_| fmt::Error)?)
    }
}

/// Reads caps as `8`, `8, unpaywall=2` or `{"unpaywall": 2, "*": 8}`. Where the text names no
/// default, `default` stays.
pub fn caps(text: &str, default: u32) -> Result<Caps, String> {
    const FORM: &str = "write it as 8, as \"8, unpaywall=2\" or as a table of names and numbers";
    let pairs: Vec<(String, String)> = if text.trim_start().starts_with('{') {
        let map: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(text).map_err(|_| FORM.to_owned())?;
        map.into_iter().map(|(name, value)| (name, value.to_string())).collect()
    } else {
        text.split(',')
            .map(|part| part.split_once('=').unwrap_or(("*", part)))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect()
    };
    let mut caps = Caps { default, named: BTreeMap::new() };
    for (name, value) in pairs {
        let cap = number(&value, 1..=u64::from(u32::MAX)).map_err(|why| match name.as_str() {
            "*" => why,
            _ => format!("{name}: {why}"),
        })?;
        match name.as_str() {
            "*" => caps.default = cap,
            _ if LimitKey::new("name", &name).is_err() => return Err(FORM.to_owned()),
            _ => {
                caps.named.insert(name, cap);
            }
        }
    }
    Ok(caps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_say_their_bounds() {
        assert_eq!(number::<u32>("8", 1..=10), Ok(8));
        assert_eq!(number::<u32>("0", 1..=10), Err("must be 1 to 10".to_owned()));
        assert_eq!(number::<u32>("-1", 1..=u64::MAX), Err("must be >= 1".to_owned()));
        assert_eq!(number::<u32>("x", 1..=10), Err("not a number".to_owned()));
        assert_eq!(number::<u8>("300", 0..=u64::MAX), Err("must be >= 0".to_owned()));
    }

    #[test]
    fn caps_read_in_three_forms() {
        let both = Caps { default: 4, named: BTreeMap::from([("unpaywall".to_owned(), 2)]) };
        assert_eq!(caps("4", 8).unwrap(), Caps { default: 4, named: BTreeMap::new() });
        assert_eq!(caps("4, unpaywall=2", 8).unwrap(), both);
        assert_eq!(caps(r#"{"*": 4, "unpaywall": 2}"#, 8).unwrap(), both);
        assert_eq!(caps("unpaywall=2", 8).unwrap().default, 8, "a table of overrides keeps the default");
        assert_eq!(caps(&both.to_string(), 8).unwrap(), both);
        for name in ["a,b", "a=b", " a", "{", "\"\\"] {
            let odd = Caps { default: 4, named: BTreeMap::from([(name.to_owned(), 2)]) };
            assert_eq!(caps(&odd.to_string(), 8).unwrap(), odd, "{name:?}");
        }
        for bad in ["", "0", "x=0", "x=y", "=3", "{", "{\"a\":\"b\"}"] {
            assert!(caps(bad, 8).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_kept_for_ever_is_off() {
        assert_eq!(keep(" Off "), Ok(Keep(None)));
        assert_eq!(keep("30d"), Ok(Keep(Some(Millis::hours(720)))));
        for text in ["off", "12h", "30d"] {
            assert_eq!(keep(text).unwrap().to_string(), text);
        }
        for bad in ["", "0", "-1d", "never"] {
            assert!(keep(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_write_themselves_exactly() {
        for text in ["1MiB", "64KB", "10MB", "512", "2GiB", "1000001"] {
            assert_eq!(size(text).unwrap().to_string(), text);
        }
    }
}
