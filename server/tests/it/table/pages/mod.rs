//! The pages that show tables to people, over HTTP: who is let in, and what they see.

mod rows;
mod sign_in;
pub(crate) mod visitor;
