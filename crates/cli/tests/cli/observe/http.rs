//! The smallest client that does: one request per connection.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Answer {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines
            .map(|(key, value)| (key, value.trim()))
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asks for a page.
pub fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[], "")
}

/// Sends JSON.
pub fn post(address: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    ask(address, "POST", path, headers, &body.to_string())
}

fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut bytes = vec![];
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let body = if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        unchunked(body)
    } else {
        body.to_owned()
    };
    Answer { status, head: head.to_owned(), body }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
        if size == 0 {
            break;
        }
    }
    body
}
