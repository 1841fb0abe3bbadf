//! Keeps the workers of the runtime free. There are as many as the machine has processors, and all tasks share them: one that works on
//! without a pause keeps others waiting.
//!
//! [`aside`] carries out what is large beside the workers, a few works at a time. [`watched`] times each poll of a task, so that
//! `/metrics` tells of whatever is large all the same; the [`times`] are kept by what the task is. Both belong to the process, as its
//! processors and its workers do. [`replaced_after_panics`] keeps a task alive that must not end.

mod aside;
mod replaced;
mod times;
mod watch;

pub(crate) use aside::{ROW, aside, aside_at_once};
pub(crate) use replaced::replaced_after_panics;
pub(crate) use times::{BOUNDS, times};
pub(crate) use watch::watched;
