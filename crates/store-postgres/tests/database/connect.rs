//! How sessions are set up, and that broken ones are not used.

use crate::{ask, connections};
use orchestrator_store_postgres::connect::{Connections, Options};
use orchestrator_store_postgres::error;
use pg_harness::Server;
use std::time::Duration;

/// What binds the planner in every session, and in those that write.
const BOUND: [&str; 3] = ["enable_seqscan", "enable_bitmapscan", "jit"];
const BOUND_TO_WRITE: [&str; 2] = ["enable_hashjoin", "enable_mergejoin"];

async fn setting(client: &tokio_postgres::Client, name: &str) -> String {
    ask(client, &format!("SELECT setting FROM pg_settings WHERE name = '{name}'")).await
}

#[tokio::test]
async fn writers_have_stable_plans_and_timeouts() {
    let options = Options {
        statement_timeout: Duration::from_millis(1234),
        ..Options::new(Server::shared().database())
    };
    let connections = Connections::new(&options).unwrap();
    let client = connections.writer().await.unwrap();
    for (name, value) in [
        ("search_path", "\"orchestrator\""),
        ("statement_timeout", "1234"),
        ("lock_timeout", "10000"),
        ("idle_in_transaction_session_timeout", "10000"),
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("plan_cache_mode", "force_generic_plan"),
        ("application_name", "orchestrator"),
    ] {
        assert_eq!(setting(&client, name).await, value, "{name}");
    }
    for name in BOUND.into_iter().chain(BOUND_TO_WRITE) {
        assert_eq!(setting(&client, name).await, "off", "{name}");
    }
}

#[tokio::test]
async fn readers_cannot_write_and_may_join_as_they_like() {
    let connections = connections(&Server::shared().database());
    let client = connections.reader().await.unwrap();
    let refused = client.batch_execute("CREATE SCHEMA x").await.unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "25006");
    assert_eq!(setting(&client, "statement_timeout").await, "30000");
    assert_eq!(setting(&client, "search_path").await, "\"orchestrator\"");
    assert_eq!(setting(&client, "plan_cache_mode").await, "force_generic_plan");
    for name in BOUND {
        assert_eq!(setting(&client, name).await, "off", "{name}");
    }
    for name in BOUND_TO_WRITE {
        let source = ask(&client, &format!("SELECT source FROM pg_settings WHERE name = '{name}'")).await;
        assert_eq!(source, "default", "{name}");
    }
}

#[tokio::test]
async fn nobody_but_the_operator_sets_synchronous_commit() {
    let server = Server::shared();
    let url = server.database();
    let sql = "SELECT setting || ' by ' || source FROM pg_settings WHERE name = 'synchronous_commit'";
    let connections = connections(&url);
    let (own, wire) = connections.own().await.unwrap();
    let driver = tokio::spawn(wire);
    assert_eq!(ask(&own, sql).await, "on by default");
    assert_eq!(ask(&connections.writer().await.unwrap(), sql).await, "on by default");
    assert_eq!(ask(&connections.reader().await.unwrap(), sql).await, "on by default");
    drop(own);
    driver.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_url_names_the_schema_and_further_settings() {
    let url = Server::shared().database();
    let connections = connections(&format!(
        "{url}?schema=blue&application_name=ann&options=-c%20work_mem%3D7MB&target_session_attrs=read-write"
    ));
    for client in [connections.writer().await.unwrap(), connections.reader().await.unwrap()] {
        assert_eq!(ask(&client, "SHOW search_path").await, "\"blue\"");
        assert_eq!(ask(&client, "SHOW work_mem").await, "7MB");
        assert_eq!(ask(&client, "SHOW application_name").await, "ann");
    }
    assert_eq!(connections.schema(), "blue");
    assert!(connections.place().ends_with("?schema=blue"));
}

#[tokio::test]
async fn a_broken_connection_is_not_used_again() {
    let server = Server::shared();
    let options = Options { writers: 1, ..Options::new(server.database()) };
    let connections = Connections::new(&options).unwrap();
    let client = connections.writer().await.unwrap();
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    server.sql("postgres", &format!("SELECT pg_terminate_backend({pid})"));
    let lost = client.query_one("SELECT 1", &[]).await.unwrap_err();
    assert!(error::is_lost(&lost), "{lost:?}");
    drop(client);
    let client = connections.writer().await.unwrap();
    assert_eq!(ask(&client, "SELECT 'here'").await, "here");
}

#[tokio::test]
async fn closed_connections_are_not_given() {
    let connections = connections(&Server::shared().database());
    drop(connections.writer().await.unwrap());
    connections.close();
    let code = connections.writer().await.map(|_| ()).unwrap_err().code();
    assert_eq!(code, "store_closed");
}
