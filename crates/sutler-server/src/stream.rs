//! A body that is written while it is sent: whoever writes waits for whoever reads.

use axum::body::Body;
use bytes::Bytes;
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Pieces between writer and reader, at most.
const PIECES_MAX: usize = 8;

/// Writes the pieces. An error breaks the answer off, so that nobody takes half for the whole.
pub type Pieces = mpsc::Sender<io::Result<Bytes>>;

struct Written(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Written {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|it| it.map(Frame::data)))
    }
}

/// An answer, and where its body is written.
#[must_use]
pub fn streamed(media: &'static str) -> (Response<Body>, Pieces) {
    let (pieces, written) = mpsc::channel(PIECES_MAX);
    let mut response = Response::new(Body::new(Written(written)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (response, pieces)
}
