//! Data in and out of an installation: backup, export, import, what to do after files were restored, and whether the sequence
//! is ahead of the rows.
//!
//! An archive is a file of JSON Lines (`docs/EXPORT.md`). `line`, `record` and `values` know how a line is written, `reader` how
//! a file ends, `check` what a good one holds; `export` and `import` move records between it and the contracts of
//! `store::archive`, and by `file_parts` the bytes of files between it and their place. Owns no state; the commands of the same names call it.

pub mod backup;
mod check;
mod compare;
mod error;
mod export;
mod file_parts;
mod file_record;
mod group_record;
mod import;
mod line;
mod one_user;
mod reader;
mod record;
mod restored;
mod table_record;
mod user_files;
mod values;

pub use check::{Checked, check};
pub use compare::{Look, latest_ids, overtake_rows};
pub use error::TransferError;
pub use export::{Begin, Exported, export};
pub use import::{Filling, begin, import};
pub use one_user::{Appended, Installation, find_user, import_one};
pub use restored::{AHEAD, MARGIN, MOST_AHEAD, raise_all, without_ceilings};

#[cfg(test)]
mod tests;
