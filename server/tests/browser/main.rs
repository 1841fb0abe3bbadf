//! The page in real browsers against the real program: people in windows of their own, and what they see.
//!
//! Needs Debian's `chromium`, `chromium-driver` and `firefox-esr`, and npm. Every test runs in Chromium; `firefox` runs those that
//! it lists in Firefox, too. Each test has its own server, drivers and browser profiles; they run one after the other, since a
//! browser alone fills a small machine.

mod amend;
mod axe;
mod chat;
mod deletion;
mod ears;
mod emoji;
mod engine;
mod firefox;
mod first_run;
mod fold;
mod gallery;
mod groups;
mod installed;
mod keep;
mod keys;
mod look;
mod marks;
mod mentions;
mod offline;
mod own;
#[path = "../support/packages.rs"]
mod packages;
mod people;
mod pictures;
mod pins;
mod presence;
mod recovery;
mod social;
mod starred;
mod tables;
mod text;
mod told;
mod unread;
mod window;
mod world;
