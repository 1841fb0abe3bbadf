//! The HTTP and WebSocket interface against a whole server, laid out like its addresses.

#[path = "../support/mod.rs"]
mod support;

mod accounts;
mod amendments;
mod contract;
mod conversations;
mod data;
mod deletion;
mod deletion_killed;
mod door;
mod files;
mod floods;
mod friends;
mod groups;
mod ids;
mod invites;
mod joiners;
mod mentions;
mod messages;
mod moments;
mod operation;
mod operator;
mod people;
mod pins;
mod presence;
mod range;
mod rates;
mod read_counts;
mod recovery;
mod restored;
mod roles;
mod settings;
mod stars;
mod transfer;
mod ws;
