//! Migrations: once, in a schema of our own, and never over what is somebody else's.

use crate::{ask, connections};
use orchestrator_store::StoreError;
use orchestrator_store_postgres::connect::Connections;
use orchestrator_store_postgres::schema::{self, VERSION};
use pg_harness::Server;

/// A database and its name.
fn database() -> (String, String) {
    let url = Server::shared().database();
    let name = url.rsplit('/').next().unwrap().to_owned();
    (url, name)
}

async fn refusal(connections: &Connections) -> StoreError {
    let error = schema::prepare(connections).await.unwrap_err();
    assert_eq!(schema::version(connections).await.unwrap_err().code(), error.code());
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_together_migrate_once() {
    let (url, name) = database();
    let starting: Vec<_> = (0..8)
        .map(|_| {
            let connections = connections(&url);
            tokio::spawn(async move {
                schema::prepare(&connections).await?;
                schema::salt(&connections).await
            })
        })
        .collect();
    let mut salts = vec![];
    for task in starting {
        salts.push(task.await.unwrap().unwrap());
    }
    salts.dedup();
    assert_eq!(salts.len(), 1, "they share one salt");
    assert_eq!(schema::version(&connections(&url)).await.unwrap(), Some(VERSION));
    let outside = "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'";
    assert_eq!(Server::shared().sql(&name, outside).trim(), "0");
}

#[tokio::test]
async fn schemas_of_one_database_are_apart() {
    let (url, _) = database();
    let (green, blue) =
        (connections(&format!("{url}?schema=green")), connections(&format!("{url}?schema=blue")));
    schema::prepare(&green).await.unwrap();
    assert_eq!(schema::version(&blue).await.unwrap(), None);
    schema::prepare(&blue).await.unwrap();
    schema::prepare(&blue).await.unwrap();
    let client = blue.writer().await.unwrap();
    client.batch_execute("INSERT INTO tenants (name) VALUES ('ann')").await.unwrap();
    assert_eq!(ask(&client, "SELECT count(*)::text FROM green.tenants").await, "0");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let (url, name) = database();
    let connections = connections(&url.replace("orchestrator@", "orchestrator:hunter2@"));
    schema::prepare(&connections).await.unwrap();
    Server::shared().sql(&name, "UPDATE orchestrator.meta SET value = '99' WHERE name = 'version'");
    let error = refusal(&connections).await;
    let StoreError::NewerSchema { place, found, known } = &error else { panic!("{error:?}") };
    assert_eq!((place.as_str(), *found, *known), (url.as_str(), 99, VERSION));
}

#[tokio::test]
async fn tables_of_others_are_refused_and_left_alone() {
    for (table, columns) in [
        ("bookmarks", "url text"),
        ("meta", "colour text"),
        ("meta", "name integer, value integer"),
        ("meta", "name text, value text"),
    ] {
        let (url, name) = database();
        let connections = connections(&url);
        let make = format!(
            "CREATE SCHEMA orchestrator AUTHORIZATION orchestrator; SET ROLE orchestrator; CREATE TABLE orchestrator.{table} ({columns})"
        );
        Server::shared().sql(&name, &make);
        let error = refusal(&connections).await;
        assert!(
            matches!(&error, StoreError::NotADatabase { detail, .. } if detail.contains(table) && detail.contains("?schema=")),
            "{table} ({columns}): {error:?}"
        );
        let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'orchestrator'";
        assert_eq!(Server::shared().sql(&name, tables).trim(), "1");
    }
}

#[tokio::test]
async fn a_role_that_may_not_make_a_schema_can_be_given_one() {
    let (url, name) = database();
    let server = Server::shared();
    server.sql(&name, &format!("ALTER DATABASE {name} OWNER TO postgres"));
    let connections = connections(&url);
    let error = schema::prepare(&connections).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Open { advice, .. } if advice.contains("GRANT CREATE")),
        "{error:?}"
    );
    server.sql(&name, "CREATE SCHEMA orchestrator AUTHORIZATION orchestrator");
    schema::prepare(&connections).await.unwrap();
}
