//! Use cases: what a person can do, each as one call. No axum, no SQL.
//!
//! Handlers of HTTP and WebSocket call these, so that both ways of doing a thing are one. Reads go to the store, writes
//! go through the queues; nothing here keeps state of its own but accounts' sessions and tickets.

pub mod access_keys;
pub mod accounts;
mod attachments;
pub mod audit;
pub mod consent;
mod conversations;
pub mod deletions;
pub mod ephemeral;
mod file_walk;
mod files;
pub mod follow;
pub mod groups;
pub mod invites;
pub mod messages;
pub mod moments;
pub mod operators;
pub mod people;
mod pictures;
pub mod push;
pub mod reports;
pub mod retention;
pub mod search;
pub mod sync;

mod passwords;
mod sessions;
mod tickets;
mod tokens;

pub use access_keys::{AccessKeyError, NewAccessKey, RememberedKeys, create_access_key};
pub use accounts::{
    AccountError, AccountOptions, Accounts, Attempt, DeviceToken, KnownDevice, LABEL_CHARACTERS,
    NewSignUpInvite, OpenSignUpInvite, Others, RecoveryCodes, SignUp, SignedIn,
};
pub use attachments::Attachments;
pub use audit::{Audit, Audited, NamedAuditLine};
pub use consent::Consent;
pub use conversations::{Conversations, History, NamedConversation, Place, ReadersError};
pub use deletions::Deletions;
pub use ephemeral::{EphemeralOptions, Ephemerals};
pub use file_walk::FileWalk;
pub use files::{FileError, FileOptions, Files, Incoming, Readable, Upload};
pub use follow::Follow;
pub use groups::Groups;
pub use invites::{InviteError, Invites};
pub use messages::Messages;
pub use moments::Moments;
pub use operators::{InspectedPerson, OperatorError, Operators};
pub use passwords::{Busy, PASSWORD_TURNS};
pub use people::{Friend, People, ShownPerson};
pub use pictures::{PictureRefusal, Pictures};
pub use push::{ConnectedDevice, Push, PushCounts, PushDependencies, SubscribeError};
pub use reports::{GroupReport, NamedReport, ReportError, ReportList, Reports};
pub use retention::Retention;
pub use search::{
    Due, DueNotices, Found, Hit, IndexState, Indexer, IndexerOptions, Search, SearchOptions, SearchRequest,
};
pub use sessions::{LiveSession, OpenSession, SessionId};
pub use sync::{ENTRIES_BYTES, InboxSync};
pub use tokens::Token;

pub use crate::notify::{Connected, Ear, Presence, Wake};
pub use crate::queue::{Pipeline, SendError, Watermark};
pub use crate::seq::{Ids, NumberError};
