//! The page in real browsers against the real program: people in windows of their own, and what they see.
//!
//! Needs Debian's `chromium`, `chromium-driver` and `firefox-esr`, and npm. Every test runs in Chromium; `firefox` runs those that
//! it lists in Firefox, too. Each test has a server of its own, and browsers (`browsers`) without anything of other tests. As many
//! tests run at once as there are cores.

mod admin;
mod amend;
mod axe;
mod axe_friends;
mod browsers;
mod chat;
mod data;
mod deletion;
mod diagnostics;
mod ears;
mod ears_further;
mod ears_walk;
mod emoji;
mod engine;
mod expiry;
mod files;
mod files_seen;
mod fingers;
mod firefox;
mod first_run;
mod fold;
mod forward;
mod gallery;
mod gallery_beside;
mod groups;
mod installed;
mod keep;
mod keys;
mod listed;
mod loads;
mod look;
mod marks;
mod mentions;
mod moderation;
mod moments;
mod offline;
mod own;
#[path = "../support/packages.rs"]
#[expect(dead_code, reason = "browsers need nothing of Python")]
mod packages;
mod people;
mod pictures;
mod pins;
mod place;
mod portraits;
mod presence;
mod recovery;
mod refusals;
mod refused;
mod search;
mod settings;
mod social;
mod starred;
mod tables;
mod text;
mod told;
mod unkept;
mod unread;
mod window;
mod world;
