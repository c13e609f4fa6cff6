//! Bodies that are written while they are sent: the writer waits for the reader.
//!
//! [`streamed_response`] is for an ordinary request, such as an export. [`long_response`] is for a long request, such as
//! server-sent events: it holds a [`LongRequestPermit`], and ends when the server drains.

use crate::server::LongRequestPermit;
use axum::body::Body;
use bytes::Bytes;
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_util::sync::WaitForCancellationFutureOwned;

/// Maximum number of chunks between writer and reader.
const PIECES_MAX: usize = 8;

/// Writes the chunks. An error aborts the response, so that a truncated body is not taken for a complete one.
pub type ChunkSender = mpsc::Sender<io::Result<Bytes>>;

/// Marks a response whose body keeps its connection busy while it is sent.
#[derive(Clone, Copy)]
pub(crate) struct LongResponse;

struct ChannelBody(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for ChannelBody {
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

/// Ends when its writer or the server does.
struct LongBody {
    pieces: ChannelBody,
    draining: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: LongRequestPermit,
}

impl hyper::body::Body for LongBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.draining.as_mut().poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.pieces).poll_frame(cx)
    }
}

/// A response, and the writer of its body.
#[must_use]
pub fn streamed_response(media: &'static str) -> (Response<Body>, ChunkSender) {
    let (pieces, written) = mpsc::channel(PIECES_MAX);
    (response(media, Body::new(ChannelBody(written))), pieces)
}

/// A response to a long request, and the writer of its body. The writer fails once the client or the server
/// has ended the stream.
#[must_use]
pub fn long_response(
    media: &'static str,
    place: LongRequestPermit,
) -> (Response<Body>, ChunkSender) {
    let (pieces, written) = mpsc::channel(PIECES_MAX);
    let body = LongBody {
        pieces: ChannelBody(written),
        draining: Box::pin(place.draining().cancelled_owned()),
        _place: place,
    };
    let mut response = response(media, Body::new(body));
    response.extensions_mut().insert(LongResponse);
    (response, pieces)
}

fn response(media: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
