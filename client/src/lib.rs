//! The Rust client of Tidemark, the chat server that keeps every device in step.
//!
//! A device owns a *cursor*: "I have everything up to 41". The server answers "nothing new" or sends what is
//! newer, and wakes the device when there is something. I1 to I14 are the invariants in
//! `docs/ARCHITECTURE.md`. The parts, from the bottom up, each usable alone:
//!
//! | part | what it does |
//! | --- | --- |
//! | [`Http`] | one method per call of the HTTP interface, over one server or several; refusals come as [`Problem`] |
//! | [`Socket`] | one WebSocket connection: frames out, frames in |
//! | [`sync`] | the rules of the cursor, as a state machine without I/O |
//! | [`store`] | where rows and cursor are kept, both in one transaction: [`MemoryStore`], [`FileStore`] |
//! | [`Client`] | keeps a device in step by itself: reconnects, catches up, repeats sends until they are settled |
//!
//! Two people, a message, and a device that gets it:
//!
//! ```no_run
//! use tidemark_client::{Client, Event, Http, MemoryStore, Options, Recipient};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), tidemark_client::Error> {
//!     let server = Http::new("http://127.0.0.1:8080")?;
//!     let ann = server.sign_up("ann", "correct horse battery").await?;
//!     let bob = server.sign_up("bob", "staple lamp window").await?;
//!
//!     // Bob's device. `FileStore` instead of `MemoryStore` keeps rows and cursor across restarts.
//!     let (_bobs, mut events) = Client::start(server.with_token(&bob.token), MemoryStore::new(), Options::default());
//!
//!     // Ann's: `send` answers once the message is durable, however often the connection breaks until then.
//!     let (anns, _) = Client::start(server.with_token(&ann.token), MemoryStore::new(), Options::default());
//!     let sent = anns.send_text(Recipient::User(bob.uid), "Hello Bob").await?;
//!     println!("stored in Ann's inbox as {}", sent.message_id);
//!
//!     while let Some(event) = events.next().await {
//!         match event {
//!             Event::Rows(rows) => {
//!                 for row in rows.iter().filter(|row| row.sender == ann.uid) {
//!                     println!("{}: {}", row.message_id, row.text().unwrap_or_default());
//!                     return Ok(());
//!                 }
//!             }
//!             Event::InStep { cursor } => println!("in step at {cursor}"),
//!             Event::Offline { retry_in, .. } => println!("back in {retry_in:?}"),
//!             Event::Cleared { cursor, .. } => println!("forget every row above {cursor}"),
//!             Event::Refused(problem) => println!("{problem}"),
//!             Event::Stopped(error) => return Err(error),
//!             _ => {}
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! With several servers over one database, `Http::any_of(&["http://chat-1:8080", "http://chat-2:8080"])` takes the place
//! of `Http::new`. Calls and devices then go on with another address when one fails.
//!
//! `https` and `wss` need the crate feature `tls`.

pub mod store;
pub mod sync;

mod client;
mod error;
mod http;
mod servers;
mod socket;
mod wire;

pub use client::{Client, Event, Events, Options};
pub use error::{Error, Problem};
pub use http::Http;
pub use socket::{Socket, SocketOptions};
pub use store::{FileStore, MemoryStore, Store};
pub use wire::{
    Account, BatchOutcome, ClientFrame, Consumed, Conversation, ConversationPage, ConversationPlace,
    ConversationSummary, Direction, Draft, Entries, Entry, Group, History, Kind, Me, Member, Mentions,
    MessageKey, Muted, NamedFile, Person, Progress, RangeEnd, RangePage, RangeQuery, ReadCount, Reason,
    Recipient, Report, ReportPage, ReportedMessage, Role, SearchHit, SearchPage, SearchQuery, Sent, Seq,
    ServerFrame, ShownPerson,
};
