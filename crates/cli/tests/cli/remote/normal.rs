//! What two runs of one command say, with what differs by nature made equal: ids, moments, spans.

use std::collections::BTreeMap;

/// Ids are numbered in the order in which they were seen first, so that equal runs number equally.
#[derive(Default)]
pub struct Ids {
    known: BTreeMap<String, usize>,
    /// The ids by their numbers.
    pub seen: Vec<String>,
}

impl Ids {
    /// A text without what differs between two equal runs. How wide a column is depends on it, so runs of spaces are one.
    pub fn normal(&mut self, text: &str) -> String {
        let lines = text.lines().map(|line| self.line(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn line(&mut self, line: &str) -> String {
        let mut said = String::new();
        let mut rest = line;
        let mut before = String::new();
        while !rest.is_empty() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if end == 0 || rest.starts_with(':') {
                let next = rest.chars().next().unwrap_or(' ');
                if !(next == ' ' && (said.ends_with(' ') || said.is_empty())) {
                    said.push(next);
                }
                rest = &rest[next.len_utf8()..];
                continue;
            }
            let word = &rest[..end];
            said.push_str(&self.word(word, &before));
            before = word.to_owned();
            rest = &rest[end..];
        }
        // A pace is as good as a span.
        if let Some((front, rest)) = said.split_once(" jobs/s") {
            let front = front.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '.'));
            said = format!("{front}<pace>{rest}");
        }
        said.trim_end().to_owned()
    }

    fn word(&mut self, word: &str, before: &str) -> String {
        if is_id(word) {
            let next = self.seen.len();
            let n = *self.known.entry(word.to_owned()).or_insert(next);
            if n == next {
                self.seen.push(word.to_owned());
            }
            return format!("<id {n}>");
        }
        let number = word.trim_end_matches('.').parse::<f64>().is_ok();
        if is_moment(word) {
            "<moment>".to_owned()
        } else if is_span(word)
            || number && (before.ends_with("_ms") || word.contains('.') || before == "seconds")
        {
            "<span>".to_owned()
        } else if number && before == "usual" {
            "<usual>".to_owned()
        } else if is_worker(word) {
            "<worker>".to_owned()
        } else {
            word.to_owned()
        }
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 36
        && word.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-')
}

fn is_moment(word: &str) -> bool {
    word.starts_with("20") && word.contains('T') && word.trim_end_matches('.').ends_with('Z')
}

/// `12ms`, `0.3s`, `1m2s`.
fn is_span(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd'])
        && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 's' | 'm' | 'h' | 'd'))
}

/// A host, a process and a moment in hexadecimal.
fn is_worker(word: &str) -> bool {
    let mut parts = word.rsplit('-');
    let moment = parts.next().is_some_and(|part| part.len() == 11 && u64::from_str_radix(part, 16).is_ok());
    moment && parts.next().is_some_and(|part| part.parse::<u32>().is_ok()) && parts.next().is_some()
}

#[test]
fn equal_runs_say_the_same() {
    let (mut one, mut other) = (Ids::default(), Ids::default());
    let a = "job 019a8f00-0000-7000-8000-000000000001  completed 12ms  2026-11-16T04:44:01.99Z  vm-1-19a8f000000 3";
    let b =
        "job 019a8f11-0000-7000-8000-000000000001  completed 1.2s 2026-11-16T04:44:02Z  vm-22-19a8f000001 3";
    assert_eq!(one.normal(a), other.normal(b));
    assert_eq!(one.normal(a), "job <id 0> completed <span> <moment> <worker> 3");
    assert_ne!(one.normal("a 1"), one.normal("a 2"));
}
