//! Clients that keep their connections and send one request after the other. They do no more than they must, so that what is
//! measured is the server.

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// What the callers saw.
pub struct Seen {
    /// How long each request took.
    pub samples: Vec<Duration>,
    /// How long all of it took.
    pub took: Duration,
}

/// Sends the same body to a path from so many connections at once, for so long. Every answer must be 201.
pub async fn post(
    address: SocketAddr,
    path: &str,
    body: &str,
    connections: u64,
    time: Duration,
) -> CliResult<Seen> {
    let request: Arc<[u8]> = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
    .into();
    let (start, mut callers, mut samples) = (Instant::now(), JoinSet::new(), vec![]);
    for _ in 0..connections {
        callers.spawn(caller(address, request.clone(), start + time));
    }
    while let Some(ended) = callers.join_next().await {
        let ended = ended.map_err(io::Error::other).and_then(|ended| ended);
        samples.extend(ended.map_err(|error| {
            CliError::new(
                Exit::Error,
                "bench",
                format!("a request to http://{address}{path} failed: {error}"),
            )
        })?);
    }
    Ok(Seen { samples, took: start.elapsed() })
}

async fn caller(address: SocketAddr, request: Arc<[u8]>, until: Instant) -> io::Result<Vec<Duration>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (mut samples, mut buffer) = (vec![], Vec::with_capacity(4096));
    while Instant::now() < until {
        let sent = Instant::now();
        stream.write_all(&request).await?;
        answer(&mut stream, &mut buffer).await?;
        samples.push(sent.elapsed());
    }
    Ok(samples)
}

/// Reads one answer to its end.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&buffer[..end]);
        if !head.starts_with("HTTP/1.1 201") {
            let first = head.lines().next().unwrap_or_default();
            return Err(io::Error::other(format!("it was answered {first:?}")));
        }
        let lengths = head.lines().filter_map(|line| line.split_once(':'));
        let length = lengths
            .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .find_map(|(_, value)| value.trim().parse::<usize>().ok());
        if buffer.len() >= end + 4 + length.unwrap_or(0) {
            return Ok(());
        }
    }
}
