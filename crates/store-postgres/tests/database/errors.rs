//! What callers are told when something is wrong with the server, the URL or the network.

use crate::{ask, connections};
use orchestrator_store::{Catalog, Store, StoreError};
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::error::{at_commit, at_work, is_lost, is_retryable, is_rolled_back};
use orchestrator_store_postgres::{Options, PostgresStore, schema};
use pg_harness::{GUARDED_PASSWORD, GUARDED_USER, Server};

async fn open(connections: &Connections) -> Result<(), StoreError> {
    connections.writer().await.map(|_| ())
}

async fn own(connections: &Connections) -> tokio_postgres::Client {
    let (client, wire) = connections.own().await.unwrap();
    // It ends with its client.
    tokio::spawn(async { wire.await.unwrap_or_default() });
    client
}

async fn end(server: &Server, client: &tokio_postgres::Client) {
    let pid = ask(client, "SELECT pg_backend_pid()::text").await;
    server.sql("postgres", &format!("SELECT pg_terminate_backend({pid})"));
}

/// Notices that a connection is gone, and gives it back.
async fn lose(client: deadpool_postgres::Client) {
    let error = client.batch_execute("SELECT 1").await.unwrap_err();
    assert!(is_lost(&error), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_down_is_unreachable_until_it_is_back() {
    let server = Server::start();
    let connections = connections(&server.database());
    schema::prepare(&connections).await.unwrap();
    let client = connections.writer().await.unwrap();
    server.stop();
    lose(client).await;
    for error in [open(&connections).await.unwrap_err(), connections.own().await.map(|_| ()).unwrap_err()] {
        assert!(
            matches!(&error, StoreError::Unreachable { place, .. } if place == connections.place()),
            "{error:?}"
        );
        assert!(error.is_transient());
        assert!(error.to_string().contains("refused"), "{error}");
    }
    server.start_again();
    open(&connections).await.unwrap();
}

#[tokio::test]
async fn a_standby_can_be_opened_and_read_but_not_written() {
    let server = Server::start();
    let connections = connections(&server.database());
    schema::prepare(&connections).await.unwrap();
    let client = connections.writer().await.unwrap();
    server.become_standby();
    lose(client).await;
    schema::prepare(&connections).await.unwrap();
    let client = connections.writer().await.unwrap();
    let write = "INSERT INTO tenants (name) VALUES ('ann')";
    let error = at_work(&client.batch_execute(write).await.unwrap_err());
    assert!(matches!(error, StoreError::NotWritable { .. }) && error.is_transient(), "{error:?}");
    assert!(error.to_string().contains("standby"), "{error}");
    server.promote();
    client.batch_execute(write).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_fails_where_nothing_can_be_written() {
    let server = Server::start();
    let url = server.database();
    let store = PostgresStore::open(Options::new(&url)).await.unwrap();
    store.check().await.unwrap();
    let refused = async |why: &str| {
        // The connections of before may be gone, which is another answer.
        for _ in 0..20 {
            match store.check().await {
                Err(error @ StoreError::NotWritable { .. }) => {
                    return assert!(error.to_string().contains(why), "{error}");
                }
                Err(_) => {}
                Ok(()) => panic!("it was written"),
            }
        }
        panic!("nobody said that it cannot be written");
    };
    server.become_standby();
    refused("standby").await;
    server.promote();
    store.check().await.unwrap();
    let database = url.rsplit('/').next().unwrap();
    server.sql("postgres", &format!("ALTER DATABASE \"{database}\" SET default_transaction_read_only = on"));
    server.kill_backends();
    refused("read-only").await;
    store.close().await;
    let error = store.check().await.unwrap_err();
    assert!(matches!(error, StoreError::Closed), "{error:?}");
}

#[tokio::test]
async fn wrong_credentials_and_names_say_what_to_do_and_no_password() {
    let server = Server::shared();
    let guarded = |password: &str, database: &str| {
        connections(&server.url_for(&format!("{GUARDED_USER}{password}"), database))
    };
    for (connections, advice) in [
        (guarded(":hunter2", "postgres"), "password"),
        (guarded("", "postgres"), "password"),
        (guarded(&format!(":{GUARDED_PASSWORD}"), "nowhere"), "create the database"),
        (connections(&server.url_for("nobody:hunter2", "postgres")), "user"),
    ] {
        let error = open(&connections).await.unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }) && !error.is_transient(), "{error:?}");
        let told = format!("{error} {error:?}");
        assert!(told.contains(advice), "{told}");
        assert!(!told.contains("hunter2") && !told.contains(GUARDED_PASSWORD), "{told}");
    }
    open(&guarded(&format!(":{GUARDED_PASSWORD}"), "postgres")).await.unwrap();
    let unknown = connections("postgres://ann@no-such-host.invalid/jobs");
    assert_eq!(open(&unknown).await.unwrap_err().code(), "store_unreachable");
}

#[tokio::test]
async fn what_the_server_says_is_told_apart() {
    let connections = connections(&Server::shared().database());
    let client = connections.writer().await.unwrap();
    for (code, told, retryable) in [
        ("40001", "database", true),
        ("40P01", "database", true),
        ("55P03", "store_busy", false),
        ("57014", "database", false),
        ("53100", "store_not_writable", false),
        ("25006", "store_not_writable", false),
        ("42501", "store_not_writable", false),
        ("23505", "database", false),
    ] {
        let sql =
            format!("DO $$ BEGIN RAISE 'told on purpose' USING ERRCODE = '{code}', HINT = 'none'; END $$");
        let error = client.batch_execute(&sql).await.unwrap_err();
        assert_eq!((at_work(&error).code(), is_retryable(&error)), (told, retryable), "{code}");
        assert!(is_rolled_back(&error) && !is_lost(&error), "{code}");
        if told != "store_busy" {
            let text = at_work(&error).to_string();
            assert!(text.contains(&format!("told on purpose (SQLSTATE {code}); none")), "{text}");
        }
    }
}

#[tokio::test]
async fn timeouts_are_the_servers() {
    let connections = connections(&Server::shared().database());
    let (holder, waiter) = (own(&connections).await, own(&connections).await);
    holder.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    waiter.batch_execute("SET lock_timeout = 1").await.unwrap();
    let error = waiter.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap_err();
    assert_eq!(at_work(&error).code(), "store_busy");
    waiter.batch_execute("SET statement_timeout = 1; SET lock_timeout = 0").await.unwrap();
    let error = waiter.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap_err();
    assert_eq!(error.code().unwrap().code(), "57014");
}

#[tokio::test]
async fn a_connection_that_is_lost_before_the_commit_did_nothing() {
    let server = Server::shared();
    let connections = connections(&server.database());
    let client = own(&connections).await;
    client.batch_execute("BEGIN").await.unwrap();
    end(server, &client).await;
    let error = client.batch_execute("SELECT 1").await.unwrap_err();
    assert!(is_lost(&error) && !is_retryable(&error), "{error:?}");
    let error = at_work(&error);
    assert!(matches!(error, StoreError::Database { .. }) && error.is_transient(), "{error:?}");
}

#[tokio::test]
async fn a_connection_that_is_lost_at_the_commit_leaves_it_open() {
    let server = Server::shared();
    let connections = connections(&server.database());
    let client = own(&connections).await;
    client.batch_execute("BEGIN").await.unwrap();
    end(server, &client).await;
    let error = client.batch_execute("COMMIT").await.unwrap_err();
    assert!(!is_rolled_back(&error));
    assert!(matches!(at_commit(&error), StoreError::Unknown { .. }), "{error:?}");
    // What comes after the server's last word is as unclear.
    let error = client.batch_execute("COMMIT").await.unwrap_err();
    assert!(matches!(at_commit(&error), StoreError::Unknown { .. }), "{error:?}");
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_is_rolled_back() {
    let connections = connections(&Server::shared().database());
    let client = connections.writer().await.unwrap();
    client
        .batch_execute(
            "CREATE TEMP TABLE once (n int UNIQUE DEFERRABLE INITIALLY DEFERRED); BEGIN; INSERT INTO once VALUES (1), (1)",
        )
        .await
        .unwrap();
    let error = client.batch_execute("COMMIT").await.unwrap_err();
    assert!(is_rolled_back(&error));
    assert_eq!(at_commit(&error).code(), "database");
}
