//! Every `sslmode`, against a server with a certificate of our own making.

use crate::{ask, connections};
use orchestrator_store::{StoreError, StoreResult};
use orchestrator_store_postgres::connect::{Connections, Options};
use pg_harness::{GUARDED_PASSWORD, GUARDED_USER, Server, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Whether the session is encrypted, or why there is none.
async fn encrypted(url: &str) -> StoreResult<bool> {
    let connections = Connections::new(&Options::new(url))?;
    let client = connections.writer().await?;
    Ok(ask(&client, "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()").await == "true")
}

async fn is_refused(url: &str) {
    let error = encrypted(url).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::Open { advice, .. } if advice.contains("sslmode")),
        "{url}: {error:?}"
    );
}

#[tokio::test]
async fn each_mode_protects_as_much_as_it_says() {
    let (ours, other) = (authority(), authority());
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &ours).unwrap();
    let tls = Tls { certificate: leaf.pem(), key: key.serialize_pem() };
    let server = Server::start_with(pg_harness::Options { tls: Some(tls), ..Default::default() });
    let dir = tempfile::tempdir().unwrap();
    let root = |name: &str, issuer: &CertifiedIssuer<'_, KeyPair>| {
        let path = dir.path().join(name);
        std::fs::write(&path, issuer.pem()).unwrap();
        format!("sslrootcert={}", path.display())
    };
    let (ours, other) = (root("ours.pem", &ours), root("other.pem", &other));
    // The certificate has the address for a name, and not this one.
    let url = server.database();
    let misnamed = url.replace("127.0.0.1", "localhost");

    assert!(!encrypted(&format!("{url}?sslmode=disable")).await.unwrap());
    assert!(encrypted(&url).await.unwrap());
    assert!(encrypted(&format!("{url}?sslmode=prefer")).await.unwrap());
    assert!(encrypted(&format!("{url}?sslmode=require")).await.unwrap());
    is_refused(&format!("{url}?sslmode=require&{other}")).await;
    assert!(encrypted(&format!("{misnamed}?sslmode=verify-ca&{ours}")).await.unwrap());
    is_refused(&format!("{misnamed}?sslmode=verify-ca&{other}")).await;
    assert!(encrypted(&format!("{url}?sslmode=verify-full&{ours}")).await.unwrap());
    is_refused(&format!("{misnamed}?sslmode=verify-full&{ours}")).await;
    is_refused(&format!("{url}?sslmode=verify-full&{other}")).await;

    let guarded = server.url_for(&format!("{GUARDED_USER}:{GUARDED_PASSWORD}"), "postgres");
    assert!(encrypted(&format!("{guarded}?sslmode=require&channel_binding=require")).await.unwrap());
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_is_required() {
    let url = Server::shared().database();
    assert!(!encrypted(&format!("{url}?sslmode=prefer")).await.unwrap());
    is_refused(&format!("{url}?sslmode=require")).await;
}

#[test]
fn files_that_do_not_hold_what_they_should_are_named() {
    let url = "postgres://ann:hunter2@db/jobs";
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = empty.path().display();
    for (parameters, named) in [
        ("sslmode=verify-full&sslrootcert=/no/such.pem".to_owned(), "/no/such.pem".to_owned()),
        (format!("sslmode=verify-full&sslrootcert={empty}"), empty.to_string()),
        ("sslcert=/no/such.pem".to_owned(), "sslkey".to_owned()),
        ("sslcert=/no/such.pem&sslkey=/no/such.key".to_owned(), "/no/such.key".to_owned()),
    ] {
        let error = Connections::new(&Options::new(format!("{url}?{parameters}"))).map(|_| ()).unwrap_err();
        assert!(matches!(error, StoreError::Open { .. }), "{error:?}");
        assert!(error.to_string().contains(&named) && !error.to_string().contains("hunter2"), "{error}");
    }
    assert!(!Path::new("/no/such.pem").exists());
    assert_eq!(connections(url).place(), "postgres://ann@db:5432/jobs");
}
