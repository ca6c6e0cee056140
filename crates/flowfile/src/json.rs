//! JSON with places. Strings and numbers are judged by `serde_json`, which tells no places; the rest of
//! the grammar is small.

use crate::format::{MAX_DEPTH, SyntaxError};
use crate::lines::Lines;
use orchestrator_core::flow::document::{Field, Kind, Node, Span};
use serde_json::Number;

/// Reads one JSON document.
pub fn parse(text: &str) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, lines: Lines::new(text), at: 0 };
    let node = parser.value(0)?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.unexpected("the end: a file holds one document")),
    }
}

struct Parser<'t> {
    text: &'t str,
    lines: Lines<'t>,
    /// The offset of the next byte; always between two characters.
    at: usize,
}

impl<'t> Parser<'t> {
    fn span(&self) -> Span {
        self.lines.span(self.at)
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let space = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += space;
        rest.get(space).copied()
    }

    /// Takes the next byte if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&mut self, wanted: &str) -> SyntaxError {
        let found = match self.text[self.at..].chars().next() {
            None => "the text ends".to_owned(),
            Some('/' | '#') => "JSON has no comments; remove this one".to_owned(),
            Some(c) => format!("found {c:?}"),
        };
        SyntaxError::new(self.span(), format!("{found}, expected {wanted}"))
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        let first = self.peek();
        let at = self.span();
        let kind = match first {
            Some(b'{' | b'[') if depth == MAX_DEPTH => return Err(SyntaxError::too_deep(at)),
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { at: Some(at), kind })
    }

    fn map(&mut self, depth: usize) -> Result<Kind, SyntaxError> {
        let mut fields = vec![];
        self.take(b'{');
        if self.take(b'}') {
            return Ok(Kind::Map(fields));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a field name in double quotes"));
            }
            let at = Some(self.span());
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.unexpected("a colon after the field name"));
            }
            fields.push(Field { at, name, value: self.value(depth + 1)? });
            if self.take(b'}') {
                return Ok(Kind::Map(fields));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the end of the map"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Kind, SyntaxError> {
        let mut items = vec![];
        self.take(b'[');
        if self.take(b']') {
            return Ok(Kind::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Kind::List(items));
            }
            if !self.take(b',') {
                return Err(self.unexpected("a comma or the end of the list"));
            }
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let mut escaped = true; // The opening quote is not the closing one.
        let end = self.text.as_bytes()[self.at..].iter().position(|byte| {
            let closing = *byte == b'"' && !escaped;
            escaped = *byte == b'\\' && !escaped;
            closing
        });
        let Some(end) = end else {
            return Err(SyntaxError::new(self.span(), "the text that starts here has no closing quote"));
        };
        self.judge(end + 1)
    }

    fn number(&mut self) -> Result<Number, SyntaxError> {
        let digits = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = self.text.as_bytes()[self.at..].iter().take_while(digits).count();
        let text = &self.text[self.at..self.at + length];
        let number: Number = self.judge(length)?;
        // `serde_json` may miss a fraction's last digit; the same number must be the same in every format.
        let exact = text.parse().ok().filter(|_| number.is_f64()).and_then(Number::from_f64);
        Ok(exact.unwrap_or(number))
    }

    fn word(&mut self) -> Result<Kind, SyntaxError> {
        let letters = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = self.text.as_bytes()[self.at..].iter().take_while(letters).count();
        let kind = match &self.text[self.at..self.at + length] {
            "null" => Kind::Null,
            "true" => Kind::Bool(true),
            "false" => Kind::Bool(false),
            word => {
                let message = format!("{word:?} is no value of JSON; put a text in double quotes");
                return Err(SyntaxError::new(self.span(), message));
            }
        };
        self.at += length;
        Ok(kind)
    }

    /// Takes the next bytes as one string or number.
    fn judge<T: serde::de::DeserializeOwned>(&mut self, length: usize) -> Result<T, SyntaxError> {
        let text = &self.text[self.at..self.at + length];
        let value = serde_json::from_str(text).map_err(|error| {
            let told = error.to_string();
            let what = told.split(" at line ").next().unwrap_or(&told);
            SyntaxError::new(self.span(), format!("{what} in what starts here"))
        })?;
        self.at += length;
        Ok(value)
    }
}
