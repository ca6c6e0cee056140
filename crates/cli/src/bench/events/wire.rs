//! As much HTTP as a load needs, so that the clients cost as little as they can.

use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Events are small.
const BUFFER: usize = 1024;

/// A connection on which events come.
pub struct Events {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

/// Listens to everything. It listens when this answers: the server has told where it begins.
pub async fn listen(address: SocketAddr) -> io::Result<Events> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: bench\r\n\r\n").await?;
    let mut events = Events { stream: BufReader::with_capacity(BUFFER, stream), line: vec![] };
    events.until(b"id: ").await?;
    Ok(events)
}

impl Events {
    /// Waits for the next event.
    pub async fn next(&mut self) -> io::Result<()> {
        self.until(b"data: ").await
    }

    /// Reads up to the next line that begins so. Sizes of chunks stand in lines of their own.
    async fn until(&mut self, start: &[u8]) -> io::Result<()> {
        loop {
            self.line.clear();
            if self.stream.read_until(b'\n', &mut self.line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.line.starts_with(start) {
                return Ok(());
            }
        }
    }
}

/// A connection on which requests are sent, one after the other.
pub struct Line(BufReader<TcpStream>);

impl Line {
    /// Connects.
    pub async fn open(address: SocketAddr) -> io::Result<Line> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Line(BufReader::new(stream)))
    }

    /// Posts JSON. Answers with the status.
    pub async fn post(&mut self, path: &str, body: &str) -> io::Result<u16> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.0.write_all(request.as_bytes()).await?;
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        loop {
            line.clear();
            self.0.read_line(&mut line).await?;
            match line.trim().split_once(": ") {
                Some(("content-length", value)) => length = value.parse().map_err(|_| broken())?,
                Some(_) => {}
                None => break,
            }
        }
        self.0.read_exact(&mut vec![0; length]).await?;
        Ok(status)
    }
}
