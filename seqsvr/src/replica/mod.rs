//! One replica of the durable state of a Set: what it is asked, what it answers, what it keeps. The state and its rules
//! are pure; the shell around them makes each change durable before the answer leaves (S5).

pub mod message;
#[allow(dead_code, reason = "the shell that asks is not all there yet")]
mod runs;
#[allow(dead_code, reason = "the shell that asks is not all there yet")]
pub(crate) mod state;

pub use message::{Answer, Earlier, Question};
