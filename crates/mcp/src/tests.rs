//! The server with a host that only pretends, as a client of either era sees it.

mod client;
mod fake;
mod inputs;
mod protocol;
mod web;
mod work;
