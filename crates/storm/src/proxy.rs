//! The wire between the orchestrator and its database, which can be cut and can go silent.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// How the wire is.
#[derive(Clone, Copy, Debug)]
struct Wire {
    /// Whether bytes pass.
    flows: bool,
    /// Whether new connections are taken.
    takes: bool,
    /// How often all connections were cut.
    cuts: u64,
}

/// A wire that is served until the runtime ends.
pub struct Proxy {
    wire: watch::Sender<Wire>,
    address: SocketAddr,
}

impl Proxy {
    /// Leads to a port of this machine.
    pub async fn start(port: u16) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let wire = watch::Sender::new(Wire { flows: true, takes: true, cuts: 0 });
        let looked_at = wire.subscribe();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    // A connection that breaks is what this is about.
                    Ok((stream, _)) => drop(tokio::spawn(carry(stream, port, looked_at.clone()))),
                    // Out of file descriptors, most likely: some will close.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        });
        Ok(Proxy { wire, address })
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Cuts all connections, and takes no new ones for a while.
    pub async fn cut(&self, span: Duration) {
        self.wire.send_modify(|wire| (wire.cuts, wire.takes) = (wire.cuts + 1, false));
        tokio::time::sleep(span).await;
        self.wire.send_modify(|wire| wire.takes = true);
    }

    /// Lets nothing pass for a while. Then all goes on as if it had only been slow, or all connections are cut.
    pub async fn fall_silent(&self, span: Duration, then_cut: bool) {
        self.wire.send_modify(|wire| wire.flows = false);
        tokio::time::sleep(span).await;
        self.wire.send_modify(|wire| (wire.flows, wire.cuts) = (true, wire.cuts + u64::from(then_cut)));
    }
}

async fn carry(near: TcpStream, port: u16, mut wire: watch::Receiver<Wire>) -> io::Result<()> {
    let Wire { takes, cuts, .. } = *wire.borrow_and_update();
    if !takes {
        return Ok(());
    }
    let far = TcpStream::connect(("127.0.0.1", port)).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
    tokio::select! {
        done = pump(near_in, far_out, wire.clone()) => done,
        done = pump(far_in, near_out, wire.clone()) => done,
        // All senders gone: the storm is over.
        _ = wire.wait_for(|wire| wire.cuts != cuts) => Ok(()),
    }
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut wire: watch::Receiver<Wire>,
) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer).await?;
        if read == 0 || wire.wait_for(|wire| wire.flows).await.is_err() {
            return Ok(());
        }
        to.write_all(&buffer[..read]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every byte with the same byte.
    async fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        port
    }

    async fn answers(stream: &mut TcpStream) -> bool {
        let mut byte = [0];
        stream.write_all(b"x").await.is_ok() && matches!(stream.read(&mut byte).await, Ok(1))
    }

    #[tokio::test]
    async fn a_cut_ends_all_connections_and_later_ones_pass() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let connect = || TcpStream::connect(("127.0.0.1", proxy.port()));
        let mut old = connect().await.unwrap();
        assert!(answers(&mut old).await);
        proxy.cut(Duration::ZERO).await;
        assert!(!answers(&mut old).await);
        assert!(answers(&mut connect().await.unwrap()).await);
    }

    #[tokio::test]
    async fn what_was_silent_goes_on() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert!(answers(&mut stream).await);
        let (asked, ()) =
            tokio::join!(answers(&mut stream), proxy.fall_silent(Duration::from_millis(1), false));
        assert!(asked);
        proxy.fall_silent(Duration::ZERO, true).await;
        assert!(!answers(&mut stream).await);
    }
}
