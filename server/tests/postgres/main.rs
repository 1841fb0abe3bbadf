//! The HTTP and WebSocket interface over PostgreSQL: the tests of `../api` that look at no file, and what only several servers of one
//! database can show.

#[path = "../support/answers.rs"]
mod answers;
#[path = "../support/mod.rs"]
mod support;

#[path = "../api/accounts.rs"]
mod accounts;
#[path = "../api/contract.rs"]
mod contract;
#[path = "../api/conversations.rs"]
mod conversations;
#[path = "../api/deletion.rs"]
mod deletion;
#[path = "../api/door.rs"]
mod door;
#[path = "../api/floods.rs"]
mod floods;
#[path = "../api/friends.rs"]
mod friends;
#[path = "../api/groups.rs"]
mod groups;
#[path = "../api/invites.rs"]
mod invites;
#[path = "../api/joiners.rs"]
mod joiners;
#[path = "../api/messages.rs"]
mod messages;
#[path = "../api/moments.rs"]
mod moments;
#[path = "../api/people.rs"]
mod people;
#[path = "../api/range.rs"]
mod range;
#[path = "../api/rates.rs"]
mod rates;
#[path = "../api/settings.rs"]
mod settings;
#[path = "../api/transfer/mod.rs"]
mod transfer;
#[path = "../api/ws.rs"]
mod ws;

mod failover;
mod formats;
mod held_up;
mod moving;
mod newer;
mod others;
mod pooler;
mod presence;
mod refusals;
mod rights;
mod servers;
mod told;
