//! The body of a request: read within a time and a size, compared with its MD5, and decompressed.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Bytes, HttpBody as _};
use hyper::body::Incoming;
use tidemark_table::wire::compress::decompress;
use tidemark_table::wire::sign::content_md5;
use tidemark_table::{ErrorCode, TableError};
use tokio_util::sync::CancellationToken;

use super::busy;
use super::head::{CheckedHead, MD5};
use crate::workers::aside;

/// How long a body may still take after the server was told to stop.
const LAST_MOMENT: Duration = Duration::from_secs(1);

/// Bytes of a body, also after it was decompressed.
const MOST_BYTES: usize = 5 << 20;

/// Bytes that deflate packs into one, at most.
const MOST_PACKED: usize = 1_032;

/// How many bytes a body has, as its head says, and how many more when it was decompressed.
///
/// # Errors
///
/// Either is too much: nothing is read.
pub(super) fn claimed(body: &Incoming, head: &CheckedHead) -> Result<usize, TableError> {
    // In pieces, it may have as many as there may be.
    let length =
        body.size_hint().exact().map_or(MOST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
    let decompressed = head.decompressed.unwrap_or(0);
    if length > MOST_BYTES || decompressed > MOST_BYTES {
        return Err(too_large());
    }
    Ok(length + decompressed)
}

/// The message in the body.
///
/// # Errors
///
/// It does not come whole, or in time; it is too large; it is another one than the head says. While the server stops, it has a second.
pub(super) async fn read(
    body: Incoming,
    head: &CheckedHead,
    within: Duration,
    stopping: &CancellationToken,
) -> Result<Bytes, TableError> {
    let stopped = async {
        stopping.cancelled().await;
        tokio::time::sleep(LAST_MOMENT).await;
    };
    let bytes = tokio::select! {
        // Most bodies are there with their heads: then no clock is asked.
        biased;
        bytes = whole(body) => bytes?,
        () = tokio::time::sleep(within) => {
            let message = format!("The body did not arrive within {} seconds.", within.as_secs());
            return Err(TableError::new(ErrorCode::RequestTimeout, message));
        }
        () = stopped => return Err(busy()),
    };
    let packed_in = bytes.len().saturating_mul(MOST_PACKED);
    let size = bytes.len().max(head.decompressed.unwrap_or_default().min(packed_in));
    aside(size, || checked(bytes, head)).await
}

/// The message in a whole body.
fn checked(bytes: Bytes, head: &CheckedHead) -> Result<Bytes, TableError> {
    if content_md5(&bytes) != head.md5 {
        let message = format!("Mismatch between MD5 value of request body and {MD5} in header.");
        return Err(TableError::new(ErrorCode::AuthFailed, message));
    }
    let Some(size) = head.decompressed else { return Ok(bytes) };
    let message = decompress(&bytes, MOST_BYTES)?;
    if message.len() != size {
        return Err(TableError::invalid(format!(
            "The decompressed body has {} bytes, and its header says {size}.",
            message.len()
        )));
    }
    Ok(message.into())
}

/// All of a body. Bytes that are only claimed are not allocated, and a body that comes in one piece is not copied.
async fn whole(mut body: Incoming) -> Result<Bytes, TableError> {
    let mut first = Bytes::new();
    let mut joined = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|_| TableError::invalid("The body did not arrive whole."))?;
        // Trailers are not looked at.
        let Ok(chunk) = frame.into_data() else { continue };
        if first.len().max(joined.len()) + chunk.len() > MOST_BYTES {
            return Err(too_large());
        }
        if first.is_empty() && joined.is_empty() {
            first = chunk;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&chunk);
    }
    Ok(if joined.is_empty() { first } else { joined.into() })
}

fn too_large() -> TableError {
    let message = format!("The size of the request body exceeds the limit of {MOST_BYTES} bytes.");
    TableError::new(ErrorCode::RequestBodyTooLarge, message)
}
