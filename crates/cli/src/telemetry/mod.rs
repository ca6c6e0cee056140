//! What is seen of this program from outside while it works: metrics and traces. Libraries only record; what is recorded
//! goes somewhere because of what is started here.

pub mod metrics;
#[cfg(test)]
mod reference;
pub mod spans;
pub mod traces;

/// Sends what is still to be sent. Takes no longer than a few seconds, whoever is to take it.
pub async fn finish() {
    traces::finish().await;
}
