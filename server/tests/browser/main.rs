//! The page in a real Chromium against the real program: people in windows of their own, and what they see.
//!
//! Needs Debian's `chromium` and `chromium-driver`, and npm. Each test has its own server, driver and browser profiles; they
//! run one after the other, since a browser alone fills a small machine.

mod amend;
mod axe;
mod chat;
mod emoji;
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
#[path = "../support/packages.rs"]
mod packages;
mod pictures;
mod pins;
mod presence;
mod social;
mod starred;
mod tables;
mod text;
mod told;
mod unread;
mod window;
mod world;
