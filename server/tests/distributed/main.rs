//! The HTTP and WebSocket interface over distributed tables (docs/CITUS.md): the tests of `../api` that write, and what only this layout
//! can show. No transaction of any of them writes to two partitions.

#[path = "../support/mod.rs"]
mod support;

#[path = "../api/accounts.rs"]
mod accounts;
#[path = "../api/conversations.rs"]
mod conversations;
#[path = "../api/deletion.rs"]
mod deletion;
#[path = "../api/groups.rs"]
mod groups;
#[path = "../api/invites.rs"]
mod invites;
#[path = "../api/joiners.rs"]
mod joiners;
#[path = "../api/messages.rs"]
mod messages;
#[path = "../api/people.rs"]
mod people;
#[path = "../api/ws.rs"]
mod ws;

mod layout;
