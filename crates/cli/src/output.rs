//! Where text goes: data to stdout, everything else to stderr. A reader that has left ends the
//! program quietly, never with a panic.

use crate::error::{CliError, CliResult};
use comfy_table::{CellAlignment, Table, presets::NOTHING};
use orchestrator_core::Millis;
pub use orchestrator_core::human::age;
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// The form of the data on stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    Jsonl,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Format {
    /// Every format by its name.
    pub const NAMES: [(&str, Format); 3] =
        [("table", Format::Table), ("json", Format::Json), ("jsonl", Format::Jsonl)];
}

impl Color {
    /// Every choice by its name.
    pub const NAMES: [(&str, Color); 3] =
        [("auto", Color::Auto), ("always", Color::Always), ("never", Color::Never)];
}

/// The two streams and how to write to them.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The form of the data.
    pub format: Format,
    /// Whether stderr has only errors.
    pub quiet: bool,
    /// Whether stdout takes colour.
    color: bool,
    /// Whether stderr takes colour.
    pub color_err: bool,
}

/// How a text is set off.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    /// A heading.
    Bold,
    /// Something of little weight.
    Dim,
    /// Bad.
    Red,
    /// Good.
    Green,
    /// To watch.
    Yellow,
}

impl Output {
    /// Settles format and colour.
    pub fn new(format: Format, color: Color, quiet: bool) -> Self {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let allowed = |terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !plain && !dumb,
        };
        let (color, color_err) =
            (allowed(std::io::stdout().is_terminal()), allowed(std::io::stderr().is_terminal()));
        Output { format, quiet, color, color_err }
    }

    /// Whether people read stdout, and not programs.
    pub fn is_table(&self) -> bool {
        self.format == Format::Table
    }

    /// Whether moving progress may be drawn on stderr.
    pub fn draws(&self) -> bool {
        !self.quiet && self.is_table() && std::io::stderr().is_terminal()
    }

    /// Writes data.
    pub fn data(&self, text: &str) -> CliResult<()> {
        let mut stdout = std::io::stdout().lock();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(|error| CliError::stdout(&error))
    }

    /// Writes a line of data.
    pub fn line(&self, text: impl AsRef<str>) -> CliResult<()> {
        self.data(&format!("{}\n", text.as_ref()))
    }

    /// Writes one JSON document: on one line for `jsonl`.
    pub fn json(&self, value: &impl Serialize) -> CliResult<()> {
        let text = if self.format == Format::Jsonl {
            serde_json::to_string(value)
        } else {
            serde_json::to_string_pretty(value)
        };
        self.line(text.map_err(|error| CliError::stdout(&error.into()))?)
    }

    /// Writes one JSON document on one line, whatever the format: for a stream of them.
    pub fn event(&self, value: &impl Serialize) -> CliResult<()> {
        self.line(serde_json::to_string(value).map_err(|error| CliError::stdout(&error.into()))?)
    }

    /// Writes a list: one document per entry for `jsonl`, else an array.
    pub fn json_list<T: Serialize>(&self, values: &[T]) -> CliResult<()> {
        match self.format {
            Format::Jsonl => values.iter().try_for_each(|value| self.json(value)),
            Format::Table | Format::Json => self.json(&values),
        }
    }

    /// Tells people something, unless they asked for quiet.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.stderr(&format!("{}\n", text.as_ref()));
        }
    }

    /// Shows an error, for programs also as JSON.
    pub fn error(&self, error: &CliError) {
        if error.is_silent() {
            return;
        }
        let text = error.text();
        let rest = text.strip_prefix("error:").unwrap_or(&text);
        let painted = paint(self.color_err, Paint::Red, "error:");
        self.stderr(&format!("{painted}{rest}"));
        if !self.is_table() {
            self.json_error(error);
        }
    }

    /// Shows an error for programs only.
    pub fn json_error(&self, error: &CliError) {
        // Programs read it, whatever the log is.
        let _ = std::io::stderr().write_all(error.json().as_bytes());
    }

    fn stderr(&self, text: &str) {
        crate::log::tell(text);
    }

    /// Sets a text off on stdout, where that takes colour.
    pub fn paint(&self, how: Paint, text: &str) -> String {
        paint(self.color, how, text)
    }

    /// Sets a text off on stderr, where that takes colour.
    pub fn paint_err(&self, how: Paint, text: &str) -> String {
        paint(self.color_err, how, text)
    }
}

fn paint(on: bool, how: Paint, text: &str) -> String {
    let code = match how {
        Paint::Bold => "1",
        Paint::Dim => "2",
        Paint::Red => "31",
        Paint::Green => "32",
        Paint::Yellow => "33",
    };
    if on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

/// Columns under headings, without lines. Those named in `right` stand to the right.
pub fn columns(headings: &[&str], right: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(headings.iter().copied());
    for row in rows {
        table.add_row(row);
    }
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&n) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A count with separators: `9,982`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How long something took: `340ms`, `3.2s`, then as [`age`].
pub fn took(span: Millis) -> String {
    match span.0 {
        ms @ 0..1000 => format!("{ms}ms"),
        ms @ 1000..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        _ => age(span),
    }
}

/// The first line of a text, cut to a number of characters.
pub fn cut(text: &str, most: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= most && line.len() == text.trim_end().len() {
        return line.to_owned();
    }
    let start: String = line.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_exact_as_they_are_short() {
        for (ms, text) in [(0, "0ms"), (340, "340ms"), (3210, "3.2s"), (59_999, "60.0s"), (192_000, "3m12s")]
        {
            assert_eq!(took(Millis(ms)), text);
        }
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("short\n", 10), "short");
        assert_eq!(cut("a long text", 7), "a long…");
        assert_eq!(cut("one\ntwo", 10), "one…");
    }

    #[test]
    fn counts_have_separators() {
        for (number, text) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (9_982, "9,982"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), text);
        }
    }

    #[test]
    fn ages_are_short() {
        for (seconds, text) in
            [(0, "0s"), (41, "41s"), (192, "3m12s"), (720, "12m"), (7500, "2h5m"), (100 * 3600, "4d4h")]
        {
            assert_eq!(age(Millis::secs(seconds)), text);
        }
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["queued".into(), "1,204".into()], vec!["done".into(), "8".into()]];
        assert_eq!(columns(&["STATE", "COUNT"], &[1], rows), "STATE   COUNT\nqueued  1,204\ndone        8\n");
    }
}
