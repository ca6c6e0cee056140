//! TOML: the tables of the `toml` crate to documents, in the order in which they were written.

use crate::format::{MAX_DEPTH, SyntaxError};
use crate::lines::Lines;
use orchestrator_core::flow::document::{Field, Kind, Node, Span};
use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads one TOML document.
pub fn parse(text: &str) -> Result<Node, SyntaxError> {
    let lines = Lines::new(text);
    let root = DeTable::parse(text).map_err(|error| {
        // Some messages go on with what was expected on lines of their own.
        let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
        SyntaxError::new(lines.span(error.span().map_or(0, |span| span.start)), message)
    })?;
    let kind = map(&lines, root.get_ref(), 0)?;
    Ok(Node { at: Some(Span { line: 1, column: 1 }), kind })
}

/// The crate keeps tables by name, so their order comes from the places of the names.
fn map(lines: &Lines<'_>, table: &DeTable<'_>, depth: usize) -> Result<Kind, SyntaxError> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let field = |(name, value): (&Spanned<_>, _)| {
        Ok(Field {
            at: Some(lines.span(name.span().start)),
            name: std::borrow::Cow::to_string(name.get_ref()),
            value: node(lines, value, depth + 1)?,
        })
    };
    Ok(Kind::Map(entries.into_iter().map(field).collect::<Result<_, SyntaxError>>()?))
}

fn node(lines: &Lines<'_>, value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Node, SyntaxError> {
    let at = lines.span(value.span().start);
    let kind = match value.get_ref() {
        DeValue::Array(_) | DeValue::Table(_) if depth == MAX_DEPTH => return Err(SyntaxError::too_deep(at)),
        DeValue::Array(items) => {
            Kind::List(items.iter().map(|item| node(lines, item, depth + 1)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => map(lines, table, depth)?,
        DeValue::String(text) => Kind::Text(text.to_string()),
        DeValue::Boolean(flag) => Kind::Bool(*flag),
        // JSON has no dates: a date goes on as it is written.
        DeValue::Datetime(date) => Kind::Text(date.to_string()),
        DeValue::Integer(number) => {
            let whole = i64::from_str_radix(number.as_str(), number.radix()).map(Number::from);
            let large = || u64::from_str_radix(number.as_str(), number.radix()).map(Number::from);
            let number = whole.or_else(|_| large());
            Kind::Number(number.map_err(|_| SyntaxError::new(at, "the number is too large"))?)
        }
        DeValue::Float(number) => {
            let finite = number.as_str().parse().ok().and_then(Number::from_f64);
            Kind::Number(finite.ok_or_else(|| SyntaxError::new(at, "a number must be finite"))?)
        }
    };
    Ok(Node { at: Some(at), kind })
}
