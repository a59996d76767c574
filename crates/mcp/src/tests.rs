//! The server with a fake host, from the view of a client of either protocol version.

mod bounds;
mod client;
mod fake;
mod inputs;
mod protocol;
mod web;
mod web_bounds;
mod work;
