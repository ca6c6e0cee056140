//! Starts a PostgreSQL server, prints the URL of an empty database, and stops when its input ends.
//!
//! ```sh
//! pg-harness [--fsync] [NAME=VALUE ...]
//! ```
//! `--fsync` makes commits reach the disk, as in production; the rest are settings of the server.

use pg_harness::{Options, Server};
use std::io::{self, Write};

fn main() -> io::Result<()> {
    let server = Server::launch(options()?)?;
    let mut stdout = io::stdout();
    writeln!(stdout, "{}", server.database())?;
    stdout.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn options() -> io::Result<Options> {
    let mut options = Options::default();
    for argument in std::env::args().skip(1) {
        if argument == "--fsync" {
            options.fsync = true;
        } else if let Some((name, value)) = argument.split_once('=') {
            options.settings.push((name.to_owned(), value.to_owned()));
        } else {
            let why = format!("{argument:?} is neither --fsync nor NAME=VALUE");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
    }
    Ok(options)
}
