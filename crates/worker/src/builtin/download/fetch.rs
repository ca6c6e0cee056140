//! One request for one file.

use super::target::{Target, here, hex};
use crate::builtin::client::{failure_of, retry_after, told, web_url};
use orchestrator_core::human::format_size;
use orchestrator_core::{ErrorClass, Failure};
use orchestrator_store::clock::Clock;
use reqwest::header::LOCATION;
use reqwest::{Client, Response, StatusCode, Url};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

/// What is wanted.
pub(super) struct Order<'a> {
    pub target: &'a Target,
    pub max_size: u64,
    pub sha256: Option<&'a str>,
    pub clock: &'a dyn Clock,
}

/// What a source answered.
pub(super) enum Answer {
    /// The file, which is in its place now.
    Stored { bytes: u64, sha256: String },
    /// It is somewhere else.
    Elsewhere(Url),
}

/// Why there is no answer.
pub(super) enum Trouble {
    /// The source's fault: another one may do better.
    Source(Failure),
    /// This machine's fault.
    Here(Failure),
}

impl Trouble {
    /// The same, with the source's address in its message.
    pub fn about(self, source: &str) -> Trouble {
        match self {
            Trouble::Source(failure) => Trouble::Source(told(source, failure)),
            here => here,
        }
    }
}

impl Order<'_> {
    pub async fn fetch(&self, client: &Client, url: &Url) -> Result<Answer, Trouble> {
        let response =
            client.get(url.clone()).send().await.map_err(|error| Trouble::Source(failure_of(error)))?;
        let status = response.status();
        match status {
            // A partial answer (206) to a whole question would be stored as if it were the file.
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => self.store(response).await,
            _ if status.is_redirection() && response.headers().contains_key(LOCATION) => {
                elsewhere(url, &response).map(Answer::Elsewhere).map_err(Trouble::Source)
            }
            _ => {
                let class = ErrorClass::of_http_status(status.as_u16());
                let mut failure = Failure::new(class, format!("answered {status}"));
                failure.retry_after = retry_after(response.headers(), self.clock.now());
                Err(Trouble::Source(failure))
            }
        }
    }

    async fn store(&self, mut response: Response) -> Result<Answer, Trouble> {
        if let Some(length) = response.content_length().filter(|length| *length > self.max_size) {
            return Err(self.too_large(&format_size(length)));
        }
        let disk = |error| Trouble::Here(here(self.target.path(), &error));
        let (part, mut file) = self.target.part().await.map_err(Trouble::Here)?;
        let (mut hasher, mut bytes) = (Sha256::new(), 0u64);
        while let Some(chunk) = response.chunk().await.map_err(|error| Trouble::Source(failure_of(error)))? {
            bytes += chunk.len() as u64;
            if bytes > self.max_size {
                return Err(self.too_large("it"));
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(disk)?;
        }
        let sha256 = hex(hasher);
        match self.sha256 {
            Some(wanted) if wanted != sha256 => {
                return Err(not_it(format!("its SHA-256 is {sha256}, not {wanted}")));
            }
            None if bytes == 0 => return Err(not_it("it is empty".to_owned())),
            _ => {}
        }
        file.flush().await.map_err(disk)?;
        file.sync_all().await.map_err(disk)?;
        drop(file);
        self.target.accept(part).await.map_err(Trouble::Here)?;
        Ok(Answer::Stored { bytes, sha256 })
    }

    fn too_large(&self, what: &str) -> Trouble {
        not_it(format!("{what} is more than the {} that are allowed", format_size(self.max_size)))
    }
}

/// What came is not what was asked for.
fn not_it(message: String) -> Trouble {
    Trouble::Source(Failure::new(ErrorClass::Validation, message))
}

fn elsewhere(url: &Url, response: &Response) -> Result<Url, Failure> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let next = url.join(location).map_err(|error| error.to_string());
    next.and_then(|next| web_url(next.as_str()))
        .map_err(|problem| Failure::permanent(format!("sent on to an address that {problem}")))
}
