//! Connections, TLS, migrations and errors, against a real server.

mod connect;
mod errors;
mod forget;
mod history;
mod journal;
mod lost_answer;
mod schema;
mod tls;
mod upgrade;

use orchestrator_store_postgres::connect::{Connections, Options};

fn connections(url: &str) -> Connections {
    Connections::new(&Options::new(url)).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// A single text out of the database.
async fn ask(client: &tokio_postgres::Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}
