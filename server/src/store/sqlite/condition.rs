//! How the store is doing, as readiness and metrics tell it. Decides nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seqsvr_core::page_sums::{self, DamagedPage};
use tokio::time::Instant;

use super::backup::last_backup;
use super::private::directory_of;
use crate::log_limit::LogLimit;
use crate::store::Health;

/// Kept up by the committer.
#[derive(Debug, Default)]
pub(super) struct SqliteCondition {
    state: Mutex<SqliteConditionState>,
    refused: AtomicU64,
    failed_flushes: AtomicU64,
    set_aside: AtomicU64,
    /// For the lines that a full disk would repeat with every commit.
    pub(super) log: LogLimit,
}

#[derive(Debug, Default)]
struct SqliteConditionState {
    trouble: Option<Arc<str>>,
    last_commit: Option<Instant>,
}

impl SqliteCondition {
    /// Nothing can be stored, for this reason.
    pub(super) fn trouble(&self, why: impl std::fmt::Display) {
        self.state().trouble = Some(why.to_string().into());
    }

    /// Something was stored.
    pub(super) fn committed(&self) {
        *self.state() = SqliteConditionState { trouble: None, last_commit: Some(Instant::now()) };
    }

    /// An attempt to store succeeded.
    pub(super) fn well(&self) {
        self.state().trouble = None;
    }

    /// So many commits were refused.
    pub(super) fn refused(&self, commits: usize) {
        self.refused.fetch_add(commits as u64, Ordering::Relaxed);
    }

    /// A flush failed.
    pub(super) fn flush_failed(&self) {
        self.failed_flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// So many rows were set aside.
    pub(super) fn set_aside(&self, rows: u64) {
        self.set_aside.fetch_add(rows, Ordering::Relaxed);
    }

    /// All of it; `database` lies on the disk whose room is told.
    pub(super) fn health(&self, database: &Path) -> Health {
        let state = self.state();
        Health {
            trouble: state.trouble.clone(),
            since_commit: state.last_commit.map(|last| last.elapsed()),
            refused_commits: self.refused.load(Ordering::Relaxed),
            failed_flushes: self.failed_flushes.load(Ordering::Relaxed),
            set_aside: self.set_aside.load(Ordering::Relaxed),
            damaged: damaged(database),
            free_bytes: free_bytes(database),
            last_backup: last_backup(database),
            pools: Vec::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, SqliteConditionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The damaged pages of `database` and of what lies beside it.
fn damaged(database: &Path) -> Vec<String> {
    // SQLite names files by the whole path, without links; the database itself may be one.
    let directories = [std::fs::canonicalize(directory_of(database)).ok(), behind_links(database)];
    let is_here =
        |page: &DamagedPage| directories.iter().flatten().any(|here| page.path.parent() == Some(here));
    page_sums::damaged().iter().filter(|page| is_here(page)).map(ToString::to_string).collect()
}

/// The directory of what `path` leads to.
fn behind_links(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()?.parent().map(Path::to_owned)
}

/// The bytes left for users other than the superuser on the disk of `file`; `None` where the system does not say.
pub fn free_bytes(file: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(file).ok()?;
    Some(room.f_bavail.saturating_mul(room.f_frsize))
}
