//! The HTTP and WebSocket interface over PostgreSQL: the tests of `../api` that look at no file, and what only several servers of one
//! database can show.

#[path = "../support/mod.rs"]
mod support;

#[path = "../api/accounts.rs"]
mod accounts;
#[path = "../api/amendments.rs"]
mod amendments;
#[path = "../api/contract.rs"]
mod contract;
#[path = "../api/conversations.rs"]
mod conversations;
#[path = "../api/data.rs"]
mod data;
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
#[path = "../api/mentions.rs"]
mod mentions;
#[path = "../api/messages.rs"]
mod messages;
#[path = "../api/moments.rs"]
mod moments;
#[path = "../api/people.rs"]
mod people;
#[path = "../api/pins.rs"]
mod pins;
#[path = "../api/range.rs"]
mod range;
#[path = "../api/rates.rs"]
mod rates;
#[path = "../api/read_counts.rs"]
mod read_counts;
#[path = "../api/recovery.rs"]
mod recovery;
#[path = "../api/roles.rs"]
mod roles;
#[path = "../api/settings.rs"]
mod settings;
#[path = "../api/stars.rs"]
mod stars;
#[path = "../api/transfer/mod.rs"]
mod transfer;
#[path = "../api/ws.rs"]
mod ws;

mod failover;
mod held_up;
mod moving;
mod others;
mod pooler;
mod presence;
mod refusals;
mod rights;
mod servers;
mod strangers;
mod told;
mod two_versions;
