//! What stands in the path of a request. What cannot be read is a problem like any other.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// The parts of a path that are not fixed.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // PostgreSQL has no character zero, so nothing that is kept is called so.
        if parts.uri.path().contains("%00") {
            return Err(Problem::parameter("path", "must not hold the character zero"));
        }
        let found = axum::extract::Path::from_request_parts(parts, state).await;
        found.map(|path| Path(path.0)).map_err(|error| Problem::parameter("path", error.body_text()))
    }
}
