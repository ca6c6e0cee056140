//! Requests and answers.

use crate::error::ClientError;
use orchestrator_api::problem::Problem;
use orchestrator_store::EventId;
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// How long the server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may take to answer, beside what it is asked to wait.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server that is away is waited for: enough for a restart.
const AWAY: Duration = Duration::from_secs(15);
/// The pauses between tries: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// A client of one server. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
}

/// A whole answer.
pub(crate) struct Answer {
    status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// What may be done with a request whose answer got lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Done twice it is as done once, so it is sent again for a while.
    Safe,
    /// It might be done twice: it is only sent again where it has not reached the server.
    Unsent,
    /// Not at all; whoever asks has pauses of his own.
    Never,
}

impl Client {
    /// A client of the server at an address such as `http://127.0.0.1:8000`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let bad = |message: String| ClientError::BadUrl { url: url.to_owned(), message };
        let mut base: Url =
            url.parse().map_err(|error: <Url as std::str::FromStr>::Err| bad(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(bad("it must begin with http:// or https://".to_owned()));
        }
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        // Somebody may have chosen one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().connect_timeout(CONNECT).build();
        Ok(Client { base, http: http.map_err(|error| bad(error.to_string()))? })
    }

    /// The server's address.
    pub fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Reads something, by the parts of its path and its parameters.
    pub(crate) async fn get<A: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(String, String)],
        repeat: Repeat,
    ) -> Result<A, ClientError> {
        let request = self.http.get(self.place(path, query)?).timeout(PATIENCE);
        let answer = self.answered(request, repeat).await;
        self.json(&answer.map_err(ClientError::nothing_done)?)
    }

    /// The same as it comes, with its headers.
    pub(crate) async fn fetch(&self, path: &[&str]) -> Result<Answer, ClientError> {
        let request = self.http.get(self.place(path, &[])?).timeout(PATIENCE);
        self.answered(request, Repeat::Safe).await
    }

    /// Sends a body and reads the answer, for which the server may take `wait` longer than usual.
    pub(crate) async fn post<B: Serialize, A: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &B,
        wait: Duration,
        repeat: Repeat,
    ) -> Result<A, ClientError> {
        let request = self.http.post(self.place(path, &[])?).json(body).timeout(PATIENCE + wait);
        self.json(&self.answered(request, repeat).await?)
    }

    /// Opens an answer that has no end: events from after one on.
    pub(crate) async fn open(
        &self,
        path: &[&str],
        query: &[(String, String)],
        after: Option<EventId>,
    ) -> Result<Response, ClientError> {
        let mut request = self.http.get(self.place(path, query)?);
        if let Some(after) = after {
            request = request.header("last-event-id", after.to_string());
        }
        let response = timeout(PATIENCE, request.send()).await;
        let response = response.map_err(|_| self.silent())?.map_err(|error| self.unreachable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(&self.whole(response).await?))
    }

    /// Sends a body, if there is one; nothing comes back but that it was done.
    pub(crate) async fn tell<B: Serialize>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&B>,
        repeat: Repeat,
    ) -> Result<(), ClientError> {
        let mut request = self.http.request(method, self.place(path, &[])?).timeout(PATIENCE);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.answered(request, repeat).await.map(drop)
    }

    fn place(&self, path: &[&str], query: &[(String, String)]) -> Result<Url, ClientError> {
        let mut url = self.base.clone();
        let bad = || self.strange(0, "the address takes no path".to_owned());
        url.path_segments_mut().map_err(|()| bad())?.pop_if_empty().extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    /// The answer, once the server gives one.
    async fn answered(&self, request: RequestBuilder, repeat: Repeat) -> Result<Answer, ClientError> {
        let end = Instant::now() + AWAY;
        let mut pause = PAUSES.0;
        loop {
            // Only a body that is a stream cannot be sent again, and there is none.
            let Some(copy) = request.try_clone() else { return self.send(request).await };
            let error = match self.send(copy).await {
                // Sent again it does no harm, so it does not matter whether it was carried out.
                Err(error) if repeat == Repeat::Safe => error.nothing_done(),
                Err(error) => error,
                answer => return answer,
            };
            if repeat == Repeat::Never || !error.is_away() || Instant::now() + pause >= end {
                return Err(error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Answer, ClientError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let fine = response.status().is_success();
        let answer = self.whole(response).await?;
        if fine { Ok(answer) } else { Err(self.refused(&answer)) }
    }

    /// Reads an answer to its end.
    async fn whole(&self, response: Response) -> Result<Answer, ClientError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?.to_vec();
        Ok(Answer { status, headers, body })
    }

    fn refused(&self, answer: &Answer) -> ClientError {
        match serde_json::from_slice::<Problem>(&answer.body) {
            Ok(problem) => ClientError::Refused(Box::new(problem)),
            Err(error) => self.strange(answer.status, error.to_string()),
        }
    }

    fn json<A: DeserializeOwned>(&self, answer: &Answer) -> Result<A, ClientError> {
        serde_json::from_slice(&answer.body).map_err(|error| self.strange(answer.status, error.to_string()))
    }

    fn unreachable(&self, error: &reqwest::Error) -> ClientError {
        let message = innermost(error).to_string();
        ClientError::Unreachable { url: self.base.to_string(), message, sent: !error.is_connect() }
    }

    fn silent(&self) -> ClientError {
        let message = format!("no answer within {} s", PATIENCE.as_secs());
        ClientError::Unreachable { url: self.base.to_string(), message, sent: true }
    }

    pub(crate) fn strange(&self, status: u16, message: String) -> ClientError {
        ClientError::Strange { url: self.base.to_string(), status, message }
    }
}

/// The innermost cause says most: the rest is "error sending request".
fn innermost(error: &reqwest::Error) -> &dyn std::error::Error {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}
