//! The measurements of tables: the real server's listener for them, over SQLite and PostgreSQL, and loads of requests that are made in
//! advance.

mod fill;
mod put;
mod range;

pub(super) use put::TablePut;
pub(super) use range::TableRange;

use std::path::PathBuf;

use tempfile::TempDir;
use tidemark_table::client::Credentials;
use tidemark_test_support::ports::free_port;

use super::postgres::within_patience;
use crate::bench::{self, Context, tables};
use crate::http::KeptAlive;
use crate::server::Server;
use crate::table_setup::make_key;
use crate::{Failure, Result, table_setup};

/// The bodies of the requests of each client.
type Bodies = Vec<Vec<Vec<u8>>>;

/// The data of a server that serves tables, with one table, and the key that opens it.
pub(super) struct TableWorld {
    pub(super) binary: PathBuf,
    pub(super) data: TempDir,
    pub(super) settings: Vec<(&'static str, String)>,
    /// Where tables are served, `HOST:PORT`.
    pub(super) address: String,
    pub(super) credentials: Credentials,
}

impl TableWorld {
    /// Makes the table and a key on SQLite, or in the empty database at this URL.
    pub(super) async fn new(context: &Context, database_url: Option<&str>) -> Result<TableWorld> {
        let (binary, data) = (context.binary.clone(), context.fresh()?);
        let address = format!("127.0.0.1:{}", free_port());
        let mut settings = vec![("TIDEMARK_TABLE__LISTEN", address.clone())];
        settings.extend(database_url.map(|url| ("TIDEMARK_STORAGE__DATABASE_URL", url.to_owned())));
        let server = Server::start_with(&settings, 0, &binary, data.path()).await?;
        let credentials = make_key(&binary, data.path(), &settings, tables::INSTANCE).await?;
        let request = table_setup::request(&credentials, "CreateTable", &tables::create())?;
        KeptAlive::open(&address).await?.ask(&request).await?;
        server.stop().await?;
        Ok(TableWorld { binary, data, settings, address, credentials })
    }

    pub(super) async fn start(&self) -> Result<Server> {
        Server::start_with(&self.settings, 0, &self.binary, self.data.path()).await
    }
}

/// Answers a second at `address`. For each of `bodies` there is a connection, which sends its requests in turn, `each` in all, and the
/// next one when the one before is answered. The signature of its first answer is checked, which does not count; all others must be
/// good, and are not looked into.
async fn rate(
    address: &str,
    credentials: &Credentials,
    operation: &'static str,
    bodies: Bodies,
    each: usize,
) -> Result<f64> {
    let mut connections = Vec::with_capacity(bodies.len());
    for bodies in &bodies {
        let requests = bodies.iter().map(|body| table_setup::request(credentials, operation, body));
        let requests = requests.collect::<Result<Vec<_>>>()?;
        let mut connection = KeptAlive::open(address).await?;
        let first = requests.first().ok_or_else(|| Failure::new("a client without requests"))?;
        let answer = connection.ask(first).await?;
        let headers = answer.headers();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        credentials.check(operation, 200, &headers, answer.body)?;
        connections.push((connection, requests));
    }
    let total = connections.len() * each;
    let tasks = connections.into_iter().map(|(mut connection, requests)| async move {
        for request in requests.iter().cycle().take(each) {
            connection.ask(request).await?;
        }
        Ok(())
    });
    within_patience(bench::rate(total, tasks)).await
}
