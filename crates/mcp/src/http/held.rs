//! A response body that owns a value until it is sent or its client disconnects.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Frame, SizeHint};

pub(super) struct Held<B, T> {
    body: B,
    _held: T,
}

impl<B, T> Held<B, T> {
    pub(super) fn new(body: B, held: T) -> Self {
        Self { body, _held: held }
    }
}

impl<B: Body + Unpin, T: Unpin> Body for Held<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
