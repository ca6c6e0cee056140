//! A small HTTP/1.1 server on a real socket, which can also misbehave.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// What goes back over the wire, byte by byte.
#[derive(Clone)]
pub struct Reply {
    bytes: Vec<u8>,
    /// Keep the connection open without another byte.
    hang: bool,
}

impl Reply {
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Reply {
        let body = body.as_ref();
        let mut head =
            format!("HTTP/1.1 {status} Whatever\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Reply { bytes: [head.as_bytes(), b"\r\n", body].concat(), hang: false }
    }

    pub fn ok(body: impl AsRef<[u8]>) -> Reply {
        Reply::new(200, &[], body)
    }

    pub fn status(status: u16) -> Reply {
        Reply::new(status, &[], "")
    }

    pub fn redirect(to: &str) -> Reply {
        Reply::new(302, &[("location", to)], "")
    }

    /// These bytes, and then the connection is closed.
    pub fn raw(bytes: impl AsRef<[u8]>) -> Reply {
        Reply { bytes: bytes.as_ref().to_vec(), hang: false }
    }

    /// These bytes, and then silence.
    pub fn hang(bytes: impl AsRef<[u8]>) -> Reply {
        Reply { bytes: bytes.as_ref().to_vec(), hang: true }
    }
}

pub struct Server {
    addr: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    answered: Arc<Notify>,
    accepting: JoinHandle<()>,
}

impl Server {
    pub async fn start(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (seen, answered) = (Arc::new(Mutex::new(vec![])), Arc::new(Notify::new()));
        let shared = (Arc::new(reply), seen.clone(), answered.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reply, seen, answered) = shared.clone();
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let Some(request) = read(&mut stream).await else { return };
                    let reply = reply(&request);
                    seen.lock().unwrap().push(request);
                    let _ = stream.write_all(&reply.bytes).await;
                    let _ = stream.flush().await;
                    answered.notify_one();
                    if reply.hang {
                        // Until the client goes away.
                        let _ = stream.read(&mut [0]).await;
                    }
                });
            }
        });
        Server { addr, seen, answered, accepting }
    }

    /// An address at which nobody listens.
    pub async fn nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The limit key of this server.
    pub fn key(&self) -> String {
        format!("host:{}", self.addr)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    pub fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|request| request.path).collect()
    }

    /// Comes back when a reply has been sent, as far as it goes.
    pub async fn answered(&self) {
        self.answered.notified().await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let mut request =
        Request { method: words.next()?.to_owned(), path: words.next()?.to_owned(), ..Request::default() };
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        request.headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = request.headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    request.body = String::from_utf8(body).ok()?;
    Some(request)
}
