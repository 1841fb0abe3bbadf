//! Tables by their wire protocol: the real program, called by the official SDKs as their registries have them, and by hand for what no SDK
//! sends.

mod before;
mod docs;
mod export;
mod inbox;
mod kills;
mod node;
pub(crate) mod packages;
mod pages;
mod python;
mod raw;
mod rust;
pub(crate) mod tell;
mod wire;
pub(crate) mod world;
