//! A typed client of the HTTP API: [`RemoteStore`] is a server as a store, [`RemoteSource`] the source of work for workers that
//! run elsewhere.

mod error;
mod events;
mod http;
mod source;
mod store;

pub use error::ClientError;
pub use events::{Change, Events, EventsQuery, LiveEvent};
pub use http::Client;
pub use source::RemoteSource;
pub use store::RemoteStore;
