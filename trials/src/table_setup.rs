//! The needs of every client of tables before its first row: an access key, a table, and signed requests.

use std::path::Path;

use serde::Deserialize;
use tidemark_table::client::{Credentials, path};
use tidemark_table::wire::proto;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::process::Command;

use crate::{Failure, Result};

/// The output of `tidemark table key create --json`.
#[derive(Deserialize)]
struct NewKey {
    instance: String,
    access_key_id: String,
    access_key_secret: String,
}

/// Makes an access key of `instance`, with the program at `binary` over the data of `settings`.
pub(crate) async fn make_key(
    binary: &Path,
    data: &Path,
    settings: &[(&str, String)],
    instance: &str,
) -> Result<Credentials> {
    let mut command = Command::new(binary);
    command.args(["table", "key", "create", "--json", "--instance", instance, "--data-dir"]).arg(data);
    command.envs(settings.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
    let made = command.output().await?;
    if !made.status.success() {
        let why = String::from_utf8_lossy(&made.stderr);
        return Err(Failure::new(format!("no access key was made: {}", why.trim())));
    }
    let NewKey { instance, access_key_id, access_key_secret } = serde_json::from_slice(&made.stdout)?;
    Ok(Credentials { instance, access_key_id, access_key_secret })
}

/// Makes a table: `first`, a text, and `id`, an integer that the server assigns.
pub(crate) fn create_table(table: &str, first: &str) -> proto::CreateTableRequest {
    let column = |name: &str, kind: proto::KeyColumnType, option| proto::KeyColumn {
        name: name.to_owned(),
        r#type: Some(kind as i32),
        option,
    };
    let assigned = Some(proto::KeyColumnOption::AutoIncrement as i32);
    proto::CreateTableRequest {
        table_meta: Some(proto::TableMeta {
            table_name: table.to_owned(),
            key_columns: vec![
                column(first, proto::KeyColumnType::String, None),
                column("id", proto::KeyColumnType::Integer, assigned),
            ],
            ..proto::TableMeta::default()
        }),
        reserved_throughput: Some(proto::ReservedThroughput {
            capacity_unit: proto::CapacityUnit { read: 0, write: 0 },
        }),
        table_options: Some(proto::Options {
            time_to_live: Some(-1),
            max_versions: Some(1),
            ..proto::Options::default()
        }),
        ..proto::CreateTableRequest::default()
    }
}

/// A whole request: signed now, which the server takes for a quarter of an hour.
#[expect(clippy::disallowed_methods, reason = "requests are signed with the time")]
pub(crate) fn request(credentials: &Credentials, operation: &str, body: &[u8]) -> Result<Vec<u8>> {
    let now = OffsetDateTime::now_utc().format(&Rfc3339)?;
    let mut head =
        format!("POST {} HTTP/1.1\r\nhost: tables\r\ncontent-length: {}\r\n", path(operation), body.len());
    for (name, value) in credentials.headers(operation, body, &now) {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    Ok([head.as_bytes(), body].concat())
}
