//! The HTTP and WebSocket interface against a whole server on any database, laid out like its addresses.

mod accounts;
mod amendments;
mod contract;
mod conversations;
mod data;
mod deletion;
mod door;
mod floods;
mod friends;
mod groups;
mod invites;
mod joiners;
mod mentions;
mod messages;
mod moments;
mod names;
mod people;
mod pins;
mod range;
mod rates;
mod read_counts;
mod recovery;
mod roles;
mod settings;
mod stars;
pub(crate) mod transfer;
mod ws;
