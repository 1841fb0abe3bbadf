//! Backups of an installation on SQLite, and their restore (docs/adr/0014).
//!
//! A backup is one file: `format` knows its bytes, `writer` writes one, `reader` reads one and the chunks of earlier ones that it refers
//! to, `series` knows the backups of a directory. `take` makes a backup of a moment (`store::sqlite::BackupMoment`), `restore` makes files
//! of an installation from it. `base_backup` has PostgreSQL's own tool check what that made. Owns no state; blocking. The commands of the
//! same names call it.

mod base_backup;
mod error;
mod files;
mod format;
mod reader;
mod restore;
mod series;
mod take;
mod writer;

pub use base_backup::{check_base_backup, is_base_backup};
pub use error::BackupError;
pub use files::{Copied, copy_files, forget_files, restore_files};
pub use reader::Whole;
pub use restore::{Place, restore, restore_stream};
pub use series::chosen;
pub use take::{Taken, Taking, take, take_stream};

#[cfg(test)]
mod tests;
