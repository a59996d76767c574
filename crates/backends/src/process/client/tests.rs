//! Tests of clients.
