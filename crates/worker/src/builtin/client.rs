//! The HTTP client behind `http` and `download`, and what its errors and headers mean.

use super::BuiltinConfig;
use orchestrator_core::{ErrorClass, Failure, Millis, Timestamp};
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Url};
use std::error::Error;
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

/// No `Retry-After` is believed beyond this: one mad header must not park a task for ever.
const MAX_RETRY_AFTER: Millis = Millis::hours(30 * 24);

/// A client that is built at its first use: reading the machine's root certificates takes a while,
/// and most commands of the binary never need it.
pub(super) struct LazyClient {
    redirects: usize,
    connect_timeout: Duration,
    idle_timeout: Option<Duration>,
    client: OnceLock<Client>,
}

impl LazyClient {
    /// A client that follows up to `redirects` redirects by itself.
    pub fn new(config: &BuiltinConfig, redirects: usize) -> Self {
        LazyClient {
            redirects,
            connect_timeout: config.connect_timeout.into(),
            idle_timeout: None,
            client: OnceLock::new(),
        }
    }

    /// The same client, but it gives up when no bytes come for a while.
    pub fn with_idle_timeout(mut self, span: Millis) -> Self {
        self.idle_timeout = Some(span.into());
        self
    }

    /// The client.
    pub fn get(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.build().map_err(|error| {
            Failure::new(ErrorClass::Defect, format!("cannot set up an HTTP client: {}", chain(&error)))
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn build(&self) -> Result<Client, reqwest::Error> {
        // An error only says that the process has a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        self.builder().build().or_else(|error| {
            // The platform's verifier refuses to exist without a root certificate, but plain HTTP
            // needs none: go on, and let only https fail.
            let client = self.builder().tls_certs_only([]).build().map_err(|_| error)?;
            tracing::warn!("no root certificates on this machine: every https request will fail");
            Ok(client)
        })
    }

    fn builder(&self) -> ClientBuilder {
        let redirect = if self.redirects == 0 { Policy::none() } else { Policy::limited(self.redirects) };
        let builder = Client::builder()
            .user_agent(concat!("orchestrator/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect_timeout)
            .redirect(redirect)
            // Retries are the store's affair; a second layer would multiply them.
            .retry(reqwest::retry::never());
        match self.idle_timeout {
            Some(span) => builder.read_timeout(span),
            None => builder,
        }
    }
}

/// What a request that got no whole answer means.
pub(super) fn failure_of(error: reqwest::Error) -> Failure {
    let class = if error.is_timeout() {
        ErrorClass::Timeout
    } else if error.is_builder() {
        ErrorClass::Validation
    } else if error.is_redirect() {
        ErrorClass::Permanent
    } else {
        ErrorClass::Network
    };
    // The URL may carry a secret; who tells the failure says which request it was.
    Failure::new(class, chain(&error.without_url()))
}

/// The same failure, with what was being done before its message.
pub(super) fn told(doing: &str, failure: Failure) -> Failure {
    Failure {
        retry_after: failure.retry_after,
        ..Failure::new(failure.class, format!("{doing}: {}", failure.message))
    }
}

/// An error with all its causes in one line.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

/// What `Retry-After` asks for: seconds or an HTTP date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Millis> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let span = match text.parse::<u64>() {
        Ok(seconds) => Millis(seconds.saturating_mul(1000)),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            let millis = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
            Timestamp::from_millis(i64::try_from(millis).ok()?).since(now)
        }
    };
    Some(span.min(MAX_RETRY_AFTER))
}

/// Reads a URL that can be asked over HTTP.
pub(super) fn web_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("must start with http:// or https://, not {other}:")),
    }
}

/// A URL for messages: without user, query and fragment, where secrets stand.
pub(super) fn shown(url: &Url) -> String {
    let host = super::host::host_of(url).unwrap_or_default();
    format!("{}://{host}{}", url.scheme(), url.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())])
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT
        let now = Timestamp::from_millis(784_111_777_000);
        for (value, span) in [
            ("120", Some(Millis::secs(120))),
            (" 0 ", Some(Millis(0))),
            ("Sun, 06 Nov 1994 08:51:37 GMT", Some(Millis::secs(120))),
            ("Sunday, 06-Nov-94 08:51:37 GMT", Some(Millis::secs(120))),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(Millis(0))),
            ("99999999999999999999", None),
            ("9999999999999999999", Some(MAX_RETRY_AFTER)),
            ("-5", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(&headers(value), now), span, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn only_web_urls_are_taken() {
        assert!(web_url("HTTPS://example.org/x").is_ok());
        for text in ["", "example.org", "ftp://example.org/x", "file:///etc/passwd", "http://", "http://a b/"]
        {
            assert!(web_url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_shown_url_keeps_no_secret() {
        let url = Url::parse("https://me:pass@example.org:8443/a?token=abc#frag").unwrap();
        assert_eq!(shown(&url), "https://example.org:8443/a");
    }
}
