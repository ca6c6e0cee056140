//! TLS as libpq's `sslmode` means it.

use super::url::Target;
use orchestrator_store::{StoreError, StoreResult};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

type Because = Box<dyn std::error::Error + Send + Sync>;

/// How much a connection is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Not at all.
    Disable,
    /// Encrypted if the server can.
    Prefer,
    /// Encrypted, whoever the server is; as with libpq, a root certificate makes this `VerifyCa`.
    Require,
    /// Encrypted, and somebody whom we trust signed for the server.
    VerifyCa,
    /// Encrypted, and the server is the one whose name the URL has.
    VerifyFull,
}

impl Mode {
    /// The mode of this name.
    pub fn parse(name: &str) -> Option<Mode> {
        Some(match name {
            "disable" => Mode::Disable,
            "allow" | "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => return None,
        })
    }

    /// What to tell of a name that is none.
    pub fn advice(name: &str) -> String {
        format!("sslmode={name:?} is none of disable, prefer, require, verify-ca and verify-full")
    }
}

/// The files of a URL, all of them PEM.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Whom to trust, instead of whom the machine trusts.
    pub root: Option<PathBuf>,
    /// Who we are.
    pub certificate: Option<PathBuf>,
    /// The key of `certificate`.
    pub key: Option<PathBuf>,
}

/// What makes TLS connections to the target.
pub fn connector(target: &Target) -> StoreResult<MakeRustlsConnect> {
    configure(target.mode, &target.files).map(MakeRustlsConnect::new).map_err(|source| StoreError::Open {
        place: target.place.clone(),
        advice: "check sslmode, sslrootcert, sslcert and sslkey of the URL",
        source,
    })
}

fn configure(mode: Mode, files: &Files) -> Result<ClientConfig, Because> {
    let provider = Arc::new(ring::default_provider());
    let trusted = match (mode, &files.root) {
        (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => None,
        (Mode::Require | Mode::VerifyCa | Mode::VerifyFull, root) => {
            let roots = Arc::new(roots(root.as_deref())?);
            Some(WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build()?)
        }
    };
    let check = ServerCheck { trusted, name_counts: mode == Mode::VerifyFull, provider: provider.clone() };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(check));
    Ok(match (&files.certificate, &files.key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(key)) => {
            let key_of_it = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
            config.with_client_auth_cert(certificates(certificate)?, key_of_it)?
        }
        _ => return Err("sslcert and sslkey need each other".into()),
    })
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, Because> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            for certificate in certificates(file)? {
                roots.add(certificate)?;
            }
        }
        // Machines hold certificates that nobody can read; the others are what counts.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err("this machine has no root certificates: name a file with sslrootcert".into());
            }
        }
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Because> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(file, &error))?;
    if found.is_empty() {
        return Err(format!("there is no certificate in {}", file.display()).into());
    }
    Ok(found)
}

fn unreadable(file: &Path, error: &pem::Error) -> String {
    format!("cannot read {}: {error}", file.display())
}

/// Checks the server's certificate as far as the mode wants it.
#[derive(Debug)]
struct ServerCheck {
    /// Absent where any certificate will do.
    trusted: Option<Arc<WebPkiServerVerifier>>,
    name_counts: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        match trusted.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is looked at last: all the rest is in order.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.name_counts => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
