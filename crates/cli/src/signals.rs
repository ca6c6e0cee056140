//! Ctrl-C and SIGTERM, one after the other.

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use tokio::signal::unix::{self, SignalKind};

/// A wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM: somebody stops the service.
    Terminate,
}

impl Signal {
    /// How a command ends that this signal ended: a service that is stopped has done what it was asked.
    pub const fn exit(self) -> Exit {
        match self {
            Signal::Interrupt => Exit::Interrupted,
            Signal::Terminate => Exit::Ok,
        }
    }
}

/// Listens from its making on; the signals do not kill the process any more.
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// Starts to listen.
    pub fn listen() -> CliResult<Signals> {
        let listen = |kind| {
            unix::signal(kind).map_err(|error| {
                CliError::new(Exit::Error, "io", format!("cannot listen for signals: {error}"))
            })
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }
}
