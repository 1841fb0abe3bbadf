//! Why a connection ends, and the code with which it is closed.

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The other side has gone.
    Gone,
    /// We close, with this code and reason.
    Close(u16, &'static str),
}

impl End {
    /// Whether the other side may have sent more than was read.
    pub(super) fn is_unread(self) -> bool {
        matches!(self, FLOOD | NOT_UTF8 | TOO_LARGE | BROKEN)
    }
}

pub(super) const LOGGED_OUT: End = End::Close(4401, "logged out");
pub(super) const RESTART: End = End::Close(1012, "the server restarts");
pub(super) const FLOOD: End = End::Close(1008, "too many frames");
pub(super) const SILENCE: End = End::Close(1001, "nothing was heard for too long");
pub(super) const NOT_UTF8: End = End::Close(1007, "a text frame was not UTF-8");
pub(super) const TOO_LARGE: End = End::Close(1009, "a frame was far too large");
pub(super) const BROKEN: End = End::Close(1002, "the frames are not WebSocket's");
