//! `tidemark reports …`: what people have reported to the operators, also while servers run.

use std::io::{self, Write as _};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::ExitError;
use crate::app::{NamedReport, ReportList};
use crate::boot::{BootError, Storage};
use crate::config::Config;
use crate::domain::message::Person;
use crate::domain::{Clock, ReportedMessage};

/// Reports read at a time.
const PAGE: usize = 200;

pub(super) const EXAMPLES: &str = "\
Examples:
  tidemark reports list                  open reports, oldest first
  tidemark reports list --all --json     also closed ones, an object a line, for programs
  tidemark reports close 17";

/// A command for reports.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[command(subcommand)]
    what: What,
}

/// Commands for reports.
#[derive(Debug, Subcommand)]
enum What {
    /// List open reports: number, time, reason, reporter, reported person, conversation, the reporter's words, the message
    List {
        /// Also list closed ones
        #[arg(long)]
        all: bool,
        /// Print JSON, an object a line
        #[arg(long)]
        json: bool,
    },
    /// Close a report that is dealt with
    Close {
        /// Its number
        number: u64,
    },
}

pub(super) async fn run(ReportArguments { what }: ReportArguments, config: &Config) -> Result<(), ExitError> {
    let storage = Storage::open_for_accounts(config).await?;
    let reports = ReportList::new(storage.directory.clone(), Clock::system());
    let done = match what {
        What::List { all, json } => list(&reports, all, json).await,
        What::Close { number } => close(&reports, number).await,
    };
    storage.close().await.map_err(BootError::from)?;
    done
}

async fn list(reports: &ReportList, all: bool, json: bool) -> Result<(), ExitError> {
    let mut after = 0;
    loop {
        let page = reports.page(all, after, PAGE).await.map_err(ExitError::failed)?;
        let mut out = io::stdout().lock();
        for report in &page {
            match json {
                true => writeln!(out, "{}", object(report))?,
                false => writeln!(out, "{}", line(report))?,
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.report.number,
            _ => return Ok(()),
        }
    }
}

async fn close(reports: &ReportList, number: u64) -> Result<(), ExitError> {
    match reports.close(None, number).await.map_err(ExitError::failed)? {
        true => Ok(writeln!(io::stdout(), "report {number} is closed")?),
        false => Err(ExitError::failed(format!(
            "there is no report {number}; `tidemark reports list` shows the open ones"
        ))),
    }
}

/// Where the message was sent.
fn place(message: &ReportedMessage) -> String {
    message.gid.map_or_else(|| "directly".to_owned(), |gid| format!("g:{gid}"))
}

fn object(NamedReport { report, about, reporter }: &NamedReport) -> Value {
    let person = |person: &Person| json!({ "uid": person.uid.0, "name": person.name });
    let complaint = &report.complaint;
    let message = complaint.message.as_ref().map(|message| {
        let gid = message.gid.map(|gid| gid.0);
        json!({ "text": message.text, "sent_at": message.sent_at.to_rfc3339(), "group": gid })
    });
    json!({
        "number": report.number, "made_at": complaint.made_at.to_rfc3339(), "closed": report.is_closed,
        "reason": complaint.reason.as_str(), "text": complaint.words, "reporter": reporter.as_ref().map(person),
        "about": person(about), "message": message,
    })
}

/// A report in one line, whatever breaks people have written.
fn line(NamedReport { report, about, reporter }: &NamedReport) -> String {
    let person = |person: &Person| format!("{} {}", person.uid, person.name);
    let complaint = &report.complaint;
    let columns = [
        report.number.to_string(),
        complaint.made_at.to_rfc3339(),
        complaint.reason.as_str().to_owned(),
        reporter.as_ref().map_or_else(|| "deleted account".to_owned(), person),
        person(about),
        complaint.message.as_ref().map_or_else(|| "-".to_owned(), place),
        complaint.words.escape_debug().to_string(),
        complaint
            .message
            .as_ref()
            .map_or_else(String::new, |message| message.text.escape_debug().to_string()),
    ];
    columns.join("\t") + if report.is_closed { "\tclosed" } else { "" }
}
