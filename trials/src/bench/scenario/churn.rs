//! `churn`: what 1,000 read markers and 1,000 reactions in one conversation leave behind, on both databases. Such rows say how things
//! stand, and an inbox keeps the newest: what is left depends on how many people there are, and not on how often they do it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};
use sqlx::{Connection as _, PgConnection, Row};
use tidemark_client::{Account, Conversation, Draft, Http, RangeQuery, Recipient};
use tidemark_test_support::servers::postgres;

use super::Measured;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::connection::client_id;
use crate::server::Server;
use crate::servers::Servers;
use crate::{Failure, Result, users};

/// Messages that are there, each of which is read, and as many reactions.
const EVENTS: usize = 1_000;
/// Messages in one call.
const BATCH: usize = 200;
/// A read marker of one person, and the reactions of two in two inboxes.
const LEFT: f64 = 5.0;

pub(super) struct Churn;

/// What lies on disk.
#[derive(Clone, Copy)]
struct Disk {
    rows: f64,
    bytes: f64,
}

impl Measured for Churn {
    const NAME: &'static str = "churn";
    const ABOUT: &'static str = "rows and bytes left by 1,000 reads and 1,000 reactions in one conversation";

    async fn prepare(_: &Context) -> Result<Self> {
        Ok(Churn)
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = on_sqlite(context).await?;
        if postgres::is_installed() {
            samples.extend(on_postgres(context).await?);
        }
        Ok(samples)
    }
}

async fn on_sqlite(context: &Context) -> Result<Vec<Sample>> {
    let data = context.fresh()?;
    let server = Server::start(&context.binary, data.path()).await?;
    let two = Two::meet(&server.http()?, context.scaled(EVENTS)).await?;
    // A stop moves what is in the journal into the tables.
    server.stop().await?;
    let before = in_files(data.path())?;
    let server = Server::start(&context.binary, data.path()).await?;
    two.churn(&server.http()?).await?;
    server.stop().await?;
    Ok(samples("SQLite", before, in_files(data.path())?))
}

async fn on_postgres(context: &Context) -> Result<Vec<Sample>> {
    let logs = context.fresh()?;
    let servers = Servers::start(&context.binary, logs.path(), 1).await?;
    let http = servers.server(0)?.http()?;
    let two = Two::meet(&http, context.scaled(EVENTS)).await?;
    let url = servers.database_url().to_owned();
    let before = in_database(&url).await?;
    two.churn(&http).await?;
    let after = in_database(&url).await?;
    servers.stop_all().await?;
    Ok(samples("PostgreSQL", before, after))
}

fn samples(database: &str, before: Disk, after: Disk) -> Vec<Sample> {
    let kib = |disk: Disk| disk.bytes / 1024.0;
    vec![
        Sample::new(format!("{database}, rows more than before"), after.rows - before.rows, "rows")
            .against("rows before", before.rows)
            .target(Target::AtMost(LEFT)),
        Sample::new(format!("{database}, size afterwards"), kib(after), "KiB").against("before", kib(before)),
    ]
}

/// Two people, and the ids of one's messages in both inboxes.
struct Two {
    accounts: Vec<Account>,
    /// In the inbox of the one who reads.
    messages: Vec<u64>,
    /// The first message, in both inboxes.
    first: [u64; 2],
}

impl Two {
    async fn meet(http: &Http, count: usize) -> Result<Two> {
        let accounts = users::sign_up(http, "churn", 2).await?;
        let [ann, bob] = [&accounts[0], &accounts[1]].map(|account| http.with_token(&account.token));
        for part in (0..count).collect::<Vec<_>>().chunks(BATCH) {
            let draft =
                |n| Draft::text_as(client_id(), Recipient::User(accounts[1].uid), &format!("message {n}"));
            ann.send_batch(&part.iter().map(draft).collect::<Vec<_>>()).await?;
        }
        let query = RangeQuery::after(0);
        let [own, theirs] = [ann.range(&query).await?.rows, bob.range(&query).await?.rows];
        let messages: Vec<u64> = theirs.iter().map(|row| row.message_id).collect();
        let (Some(first_own), Some(first)) = (own.first(), messages.first()) else {
            return Err(Failure::new("the messages have not come"));
        };
        let first = [first_own.message_id, *first];
        Ok(Two { accounts, messages, first })
    }

    /// Bob reads each message, and both react to the first one again and again.
    async fn churn(&self, http: &Http) -> Result<()> {
        let people = [&self.accounts[0], &self.accounts[1]];
        let [ann, bob] = people.map(|account| http.with_token(&account.token));
        let [with_bob, with_ann] = [people[1].uid, people[0].uid].map(Conversation::User);
        for (n, message) in self.messages.iter().enumerate() {
            bob.mark_read(with_ann, *message).await?;
            let emoji = [["👍", "🎉"][n / 2 % 2].to_owned()];
            match n % 2 {
                0 => ann.react(client_id(), with_bob, self.first[0], &emoji).await?,
                _ => bob.react(client_id(), with_ann, self.first[1], &emoji).await?,
            };
        }
        Ok(())
    }
}

/// Rows of inboxes in the files of a server that has stopped, and the bytes of all files of the database.
fn in_files(folder: &Path) -> Result<Disk> {
    let mut bytes = 0;
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        if file.file_name().to_string_lossy().contains(".db") {
            bytes += file.metadata()?.len();
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let tables = Connection::open_with_flags(folder.join("tidemark.db"), flags)?;
    let rows: i64 = tables.query_row("SELECT count(*) FROM entries", [], |row| row.get(0))?;
    Ok(Disk { rows: rows as f64, bytes: bytes as f64 })
}

/// The same of a database, once what is dead in it has been cleared away.
async fn in_database(url: &str) -> Result<Disk> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query("VACUUM entries").execute(&mut connection).await?;
    let counted = sqlx::query(
        "SELECT (SELECT count(*) FROM entries)::float8 AS rows, pg_database_size(current_database())::float8 AS bytes",
    );
    let row = counted.fetch_one(&mut connection).await?;
    Ok(Disk { rows: row.try_get("rows")?, bytes: row.try_get("bytes")? })
}
