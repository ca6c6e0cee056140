//! What operators see of a running server: metrics, the log, traces, and a configuration that is taken up while it runs.

mod deploy;
mod http;
mod logs;
mod metrics;
mod promtool;
mod reload;
mod server;
mod traces;
