//! `tidemark audit`: what operators, and administrators of groups, have done to others. Nothing is changed.

use std::io::{self, Write as _};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::ExitError;
use crate::app::{Audit, NamedAuditLine};
use crate::boot::{BootError, Storage};
use crate::config::Config;
use crate::domain::Clock;

/// Lines read at a time.
const PAGE: usize = 1_000;

const EXAMPLES: &str = "\
Examples:
  tidemark audit                                    the newest 100 lines, the newest first
  tidemark audit --most 1000 --json                 an object a line, for programs";

/// What is shown, and how.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AuditArguments {
    /// How many lines to show
    #[arg(long, default_value_t = 100)]
    most: usize,
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(
    AuditArguments { most, json }: AuditArguments,
    config: &Config,
) -> Result<(), ExitError> {
    let storage = Storage::open_for_accounts(config).await?;
    let audit = Audit::new(Arc::clone(&storage.directory), Clock::system());
    let done = show(&audit, most, json).await;
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn show(audit: &Audit, most: usize, json: bool) -> Result<(), ExitError> {
    let (mut left, mut before) = (most, None);
    while left > 0 {
        let page = audit.lines(before, left.min(PAGE)).await.map_err(ExitError::failed)?;
        let Some(last) = page.last() else { return Ok(()) };
        (left, before) = (left - page.len(), Some(last.line.number));
        let mut out = io::stdout().lock();
        for line in page {
            writeln!(out, "{}", if json { object(&line) } else { text(&line) })?;
        }
    }
    Ok(())
}

fn object(NamedAuditLine { line, by, person }: &NamedAuditLine) -> String {
    json!({
        "at": line.at.to_rfc3339(), "by": line.by.map(|uid| uid.0), "by_name": by, "action": line.action,
        "uid": line.person.map(|uid| uid.0), "name": person, "gid": line.group.map(|gid| gid.0), "detail": line.detail,
    })
    .to_string()
}

fn text(NamedAuditLine { line, by, person }: &NamedAuditLine) -> String {
    let by = by.as_deref().unwrap_or("a command");
    let person = person.as_deref().unwrap_or_default();
    let group = line.group.map(|gid| format!("g:{gid}")).unwrap_or_default();
    let text = format!("{}\t{by}\t{}\t{person}\t{group}\t{}", line.at.to_rfc3339(), line.action, line.detail);
    text.trim_end().to_owned()
}
