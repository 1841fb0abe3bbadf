//! `ids`: who assigns the ids of messages. seqsvr and the store on SQLite, and the store on PostgreSQL, with few and many senders,
//! to one receiver and to many.

use std::path::Path;

use seqsvr_core::page_sums;
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;
use tidemark_client::Account;

use super::Measured;
use super::postgres::{database, within_patience};
use crate::bench::report::Sample;
use crate::bench::{self, Context};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::servers::Servers;
use crate::{Result, users};

/// Senders, each with one message in flight, and how many messages all of them send in a run.
const SENDERS: [(usize, usize); 4] = [(1, 1_000), (8, 4_000), (32, 10_000), (256, 20_000)];
/// Receivers of messages that are spread.
const RECEIVERS: u32 = 10_000;
/// The uid of the first of them, beyond those of users who sign up.
const FIRST: u32 = 1_000_000;

/// The service that assigns the ids, and the place of the rows.
const MODES: [&str; 3] = ["seqsvr, SQLite", "store, SQLite", "store, PostgreSQL"];
/// The receivers.
const SPREADS: [&str; 2] = ["one receiver", "10,000 receivers"];

pub(super) struct IdSources {
    /// One of each mode.
    servers: Vec<Servers>,
    /// The senders of each.
    accounts: Vec<Vec<Account>>,
    _folders: [TempDir; 3],
}

impl Measured for IdSources {
    const NAME: &'static str = "ids";
    const ABOUT: &'static str = "ids by seqsvr and by the store: 1 to 256 senders, one receiver and 10,000";

    async fn prepare(context: &Context) -> Result<Self> {
        let folders = [context.fresh()?, context.fresh()?, context.fresh()?];
        let most = SENDERS.iter().map(|(senders, _)| *senders).max().unwrap_or_default();
        let mut servers = Vec::new();
        let mut accounts = Vec::new();
        for (folder, ids) in folders.iter().zip(["seqsvr", "store"]) {
            let settings = vec![("TIDEMARK_MESSAGES__IDS", ids.to_owned())];
            let mut one = Servers::over_files(&context.binary, folder.path(), settings);
            one.add(None).await?;
            accounts.push(users::sign_up(&one.http()?, "ids", most).await?);
            one.stop(0).await?;
            receivers_on_sqlite(folder.path())?;
            one.run(0).await?;
            servers.push(one);
        }
        let over =
            Servers::start_over(database().await?, &context.binary, folders[2].path(), 1, vec![]).await?;
        accounts.push(users::sign_up(&over.http()?, "ids", most).await?);
        receivers_on_postgres(over.database_url().expect("it is over PostgreSQL")).await?;
        servers.push(over);
        Ok(IdSources { servers, accounts, _folders: folders })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for spread in SPREADS {
            for (count, messages) in SENDERS {
                let each = (context.scaled(messages) / count).max(1);
                let mut first = None;
                for ((mode, keeper), accounts) in MODES.iter().zip(&self.servers).zip(&self.accounts) {
                    let url = keeper.http()?.socket_url();
                    let to_one = spread == SPREADS[0];
                    let rate = within_patience(rate(&url, &accounts[..count], each, to_one)).await?;
                    let sample = Sample::new(format!("{mode}: {count} to {spread}"), rate, "messages/s");
                    samples.push(match first {
                        Some(first) => sample.against(MODES[0], first),
                        None => sample,
                    });
                    first.get_or_insert(rate);
                }
            }
        }
        Ok(samples)
    }
}

/// Acknowledged messages a second; each sender waits for the answer before the next.
async fn rate(url: &str, accounts: &[Account], each: usize, to_one: bool) -> Result<f64> {
    let mut connections = Vec::new();
    for account in accounts {
        connections.push(ClientConnection::open(url, &account.token).await?);
    }
    let text = "x".repeat(200);
    let tasks = connections.into_iter().map(|mut connection| {
        let text = text.clone();
        async move {
            for _ in 0..each {
                let receiver = if to_one { 0 } else { rand::random_range(0..RECEIVERS) };
                let to = format!(r#"{{"user":{}}}"#, FIRST + receiver);
                connection.say(send_frame(client_id(), &to, &text)).await?;
                connection.expect("sent").await?;
            }
            Ok(())
        }
    });
    bench::rate(accounts.len() * each, tasks).await
}

/// Accounts that nobody can log in to: hashing so many passwords would take minutes.
fn receivers_on_sqlite(folder: &Path) -> Result<()> {
    page_sums::begin();
    let mut connection = rusqlite::Connection::open(folder.join("tidemark.db"))?;
    let all = connection.transaction()?;
    let insert = "INSERT INTO accounts (uid, name, name_key, password_hash, created_at, disabled) VALUES (?1, ?2, ?2, '', 0, 0)";
    for uid in FIRST..FIRST + RECEIVERS {
        all.execute(insert, rusqlite::params![uid, format!("receiver-{uid}")])?;
    }
    Ok(all.commit()?)
}

/// The same.
async fn receivers_on_postgres(url: &str) -> Result<()> {
    let uids = FIRST..FIRST + RECEIVERS;
    let mut connection = PgConnection::connect(url).await?;
    sqlx::query(
        "INSERT INTO accounts (uid, name, name_key, password_hash, created_at)
         SELECT uid, 'receiver-' || uid, 'receiver-' || uid, '', 0 FROM unnest($1) AS uid",
    )
    .bind(uids.map(i64::from).collect::<Vec<_>>())
    .execute(&mut connection)
    .await?;
    Ok(())
}
