//! A client of tables over one connection, as other programs have it: signed requests, checked answers. A broken connection is made anew
//! with the next server.

use std::time::Duration;

use prost::Message;
use tidemark_table::client::{AnswerError, Credentials};
use tidemark_table::wire::proto;
use tokio::time::{sleep, timeout};

use crate::http::KeptAlive;
use crate::table_setup::{create_table, request};
use crate::{Failure, Result};

/// How long an answer may take: longer than a server stands still.
const PATIENCE: Duration = Duration::from_secs(20);
/// The pause before the next server is tried.
const PAUSE: Duration = Duration::from_millis(20);
/// The table of a fault run.
pub(super) const TABLE: &str = "ledger";

/// The outcome of a call.
pub(super) enum Called<A> {
    /// The answer.
    Done(A),
    /// The server refuses, and has done nothing.
    Refused,
    /// No answer, or one that leaves it open.
    Unknown,
}

/// See the module.
pub(super) struct TableCaller {
    credentials: Credentials,
    /// Where tables are served, `HOST:PORT`.
    addresses: Vec<String>,
    /// The one that it talks to.
    at: usize,
    connection: Option<KeptAlive>,
}

impl TableCaller {
    /// A client of any of `addresses`, which begins with the one at `first`.
    pub(super) fn new(credentials: &Credentials, addresses: &[String], first: usize) -> TableCaller {
        TableCaller {
            credentials: credentials.clone(),
            addresses: addresses.to_vec(),
            at: first,
            connection: None,
        }
    }

    /// Asks for an operation, once.
    ///
    /// # Errors
    /// When the server answers what it never may.
    pub(super) async fn call<A: Message + Default>(
        &mut self,
        operation: &str,
        message: &impl Message,
    ) -> Result<Called<A>> {
        let body = message.encode_to_vec();
        let mut connection = self.connect().await?;
        let request = request(&self.credentials, operation, &body)?;
        let Ok(Ok(answer)) = timeout(PATIENCE, connection.answer(&request)).await else {
            self.at += 1;
            return Ok(Called::Unknown);
        };
        let headers = answer.headers();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let called = match self.credentials.check(operation, answer.status, &headers, answer.body) {
            Ok(()) => Ok(Called::Done(A::decode(answer.body)?)),
            Err(AnswerError::Refused { code, message }) => match code.as_str() {
                "OTSServerBusy" | "OTSRowOperationConflict" | "OTSRequestTimeout" => Ok(Called::Refused),
                "OTSTimeout" => Ok(Called::Unknown),
                _ => Err(Failure::new(format!("{operation} was refused for good: {code}: {message}"))),
            },
            Err(untrusted) => Err(untrusted.into()),
        };
        self.connection = Some(connection);
        called
    }

    /// Asks until there is an answer. For operations that may be repeated.
    ///
    /// # Errors
    /// When there is none for a long time, and as [`TableCaller::call`].
    pub(super) async fn ask<A: Message + Default>(
        &mut self,
        operation: &str,
        message: &impl Message,
    ) -> Result<A> {
        let answered = async {
            loop {
                match self.call(operation, message).await? {
                    Called::Done(answer) => return Ok(answer),
                    Called::Refused | Called::Unknown => sleep(PAUSE).await,
                }
            }
        };
        let late = |_| Failure::new(format!("{operation} was not answered within {:?}", 4 * PATIENCE));
        timeout(4 * PATIENCE, answered).await.map_err(late)?
    }

    /// A connection to a server that takes one.
    async fn connect(&mut self) -> Result<KeptAlive> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let connected = async {
            loop {
                if let Ok(connection) = KeptAlive::open(self.address()).await {
                    return connection;
                }
                self.at += 1;
                sleep(PAUSE).await;
            }
        };
        let connected = timeout(4 * PATIENCE, connected).await;
        connected.map_err(|_| Failure::new("no server takes connections for tables"))
    }

    fn address(&self) -> &str {
        &self.addresses[self.at % self.addresses.len()]
    }
}

/// Makes the table: `group`, a text, and `id`, an integer that the server assigns.
pub(super) async fn make_table(client: &mut TableCaller) -> Result<()> {
    let request = create_table(TABLE, "group");
    client.ask::<proto::CreateTableResponse>("CreateTable", &request).await.map(drop)
}
