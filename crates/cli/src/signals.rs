//! Ctrl-C, SIGTERM and SIGHUP, one after the other.

use crate::error::{CliError, CliResult};
use crate::exit::Exit;
use std::fs::File;
use tokio::signal::unix::{self, SignalKind};

/// A wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM: somebody stops the service.
    Terminate,
}

/// What is asked of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To end.
    End(Signal),
    /// To read its configuration anew.
    Reload,
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
    /// Of a service, with whether it had a terminal when it started. Any other command ends with its terminal.
    hangup: Option<(unix::Signal, bool)>,
}

impl Signals {
    /// Starts to listen.
    pub fn listen() -> CliResult<Signals> {
        Ok(Signals {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: None,
        })
    }

    /// Starts to listen for a service, which takes SIGHUP for a wish to reload.
    pub fn of_service() -> CliResult<Signals> {
        let hangup = Some((on(SignalKind::hangup())?, has_terminal()));
        Ok(Signals { hangup, ..Signals::listen()? })
    }

    /// The next wish to end.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            Some(()) = self.terminate.recv() => Signal::Terminate,
            else => std::future::pending().await,
        }
    }

    /// The next thing that is asked of a service.
    pub async fn asked(&mut self) -> Asked {
        let Signals { interrupt, terminate, hangup } = self;
        let hung_up = async {
            match hangup {
                Some((signal, terminal)) => signal.recv().await.map(|()| *terminal),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(()) = interrupt.recv() => Asked::End(Signal::Interrupt),
            Some(()) = terminate.recv() => Asked::End(Signal::Terminate),
            // The same signal says that the terminal went away.
            Some(terminal) = hung_up => if terminal && !has_terminal() {
                Asked::End(Signal::Terminate)
            } else {
                Asked::Reload
            },
            else => std::future::pending().await,
        }
    }
}

fn on(kind: SignalKind) -> CliResult<unix::Signal> {
    unix::signal(kind)
        .map_err(|error| CliError::new(Exit::Error, "io", format!("cannot listen for signals: {error}")))
}

fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok()
}
