//! The words on the wire: what HTTP bodies and WebSocket frames are made of.
//!
//! Own types, apart from the server's: this crate depends on the protocol, not on the server. Unknown fields are
//! ignored and unknown kinds kept as text, so that a newer server does not break an older client.

mod entry;
mod file;
mod frame;
mod group_message;
mod http;

pub use entry::{Conversation, Draft, Entry, Kind, MessageKey, Recipient, Sent};
pub use file::NamedFile;
pub use frame::{ClientFrame, Entries, Progress, ServerFrame};
pub use group_message::{Mentions, ReadCount};
pub use http::{
    Account, BatchOutcome, Consumed, ConversationPage, ConversationPlace, ConversationSummary, Direction,
    Group, History, Me, Member, Muted, Person, RangeEnd, RangePage, RangeQuery, Reason, Report, ReportPage,
    ReportedMessage, Role, SearchHit, SearchPage, SearchQuery, Seq, ShownPerson,
};
pub(crate) use http::{
    BatchAnswer, BatchRequest, Description, GroupMade, NewValue, Readers, SeenLast, Ticket,
};
