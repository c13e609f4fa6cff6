//! Response body of one piece, or of chunks that many responses share.
//!
//! Its length is known before it is sent. It never waits and never fails.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Response body. Cheap to clone, whatever its length.
#[derive(Clone)]
pub enum ChunkedBody {
    /// One piece; empty once it was sent.
    Whole(Bytes),
    /// The chunks from `next` on, `left` bytes in total.
    Parts {
        /// All chunks.
        parts: Arc<[Bytes]>,
        /// Index of the next chunk.
        next: usize,
        /// Bytes still to send.
        left: usize,
    },
}

impl ChunkedBody {
    /// A body of one piece.
    pub fn of(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(bytes.into())
    }

    /// A body of several chunks, none of them empty.
    pub fn of_parts(parts: Vec<Bytes>) -> Self {
        let left = parts.iter().map(Bytes::len).sum();
        let parts = parts.into();
        Self::Parts {
            parts,
            next: 0,
            left,
        }
    }

    /// The next bytes to send.
    fn take(&mut self) -> Option<Bytes> {
        match self {
            Self::Whole(bytes) => Some(std::mem::take(bytes)).filter(|it| !it.is_empty()),
            Self::Parts { parts, next, left } => {
                let part = parts.get(*next)?;
                *next += 1;
                *left -= part.len();
                Some(part.clone())
            }
        }
    }

    fn left(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Parts { left, .. } => *left,
        }
    }
}

impl Default for ChunkedBody {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl Body for ChunkedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::ChunkedBody;
    use bytes::Bytes;
    use hyper::body::Body;

    /// The pieces that are sent, and the announced length before each and at the end.
    fn sent(mut content: ChunkedBody) -> (Vec<Bytes>, Vec<u64>) {
        let remaining = |content: &ChunkedBody| content.size_hint().exact().expect("it is known");
        let (mut pieces, mut left) = (Vec::new(), vec![remaining(&content)]);
        while !content.is_end_stream() {
            pieces.push(content.take().expect("there is more"));
            left.push(remaining(&content));
        }
        assert_eq!(content.take(), None);
        (pieces, left)
    }

    #[test]
    fn bytes_are_sent_in_one_piece() {
        let (pieces, left) = sent(ChunkedBody::of("ab"));
        assert_eq!((pieces, left), (vec![Bytes::from("ab")], vec![2, 0]));
    }

    #[test]
    fn parts_are_sent_in_order_with_the_remaining_length() {
        let parts = vec![Bytes::from("a"), Bytes::from("bcd"), Bytes::from("ef")];
        let content = ChunkedBody::of_parts(parts.clone());
        for _ in 0..2 {
            let expected = (parts.clone(), vec![6, 5, 2, 0]);
            assert_eq!(sent(content.clone()), expected);
        }
    }

    #[test]
    fn an_empty_body_has_ended() {
        assert_eq!(sent(ChunkedBody::default()), (vec![], vec![0]));
    }
}
