//! The client against a real server, and against servers that go away half-way.

mod away;
mod suite;
mod through;
