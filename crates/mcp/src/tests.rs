//! The server with a host that only pretends, as a client of either era sees it.

mod bounds;
mod client;
mod fake;
mod inputs;
mod protocol;
mod web;
mod web_bounds;
mod work;
