//! `ls`, `describe`, `get`, `range` and `put`: operations on tables, asked for as any other client does.

use std::io::Write as _;

use clap::Args;
use prost::Message;
use serde_json::json;
use tidemark_table::KeyValue;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedRow, decode_rows, encode_sent};
use tidemark_table::wire::proto;

use super::client::{TableConnection, TableServer};
use super::values::{column, key_part, key_shown, shown};
use crate::cli::ExitError;

/// List tables.
#[derive(Debug, Args)]
pub(super) struct Ls {
    #[command(flatten)]
    server: TableServer,
}

/// Describe a table.
#[derive(Debug, Args)]
pub(super) struct Describe {
    /// The table
    table: String,
    #[command(flatten)]
    server: TableServer,
}

/// Show a row.
#[derive(Debug, Args)]
pub(super) struct Get {
    /// The table
    table: String,
    /// The key's values, in the order of its columns; bytes in hexadecimal
    #[arg(required = true, num_args = 1..=4, allow_negative_numbers = true)]
    key: Vec<String>,
    #[command(flatten)]
    server: TableServer,
}

/// Show rows.
#[derive(Debug, Args)]
pub(super) struct Range {
    /// The table
    table: String,
    /// Only rows whose keys begin with these values
    #[arg(num_args = 0..=4, allow_negative_numbers = true)]
    prefix: Vec<String>,
    /// Only rows from this value of the next key column on
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    from: Option<String>,
    /// Only rows before this value of the next key column
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    before: Option<String>,
    /// From the largest key to the smallest
    #[arg(long)]
    backward: bool,
    /// The largest number of rows
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: TableServer,
}

/// Put a row.
#[derive(Debug, Args)]
pub(super) struct Put {
    /// The table
    table: String,
    /// The key's values, `+` for the one that the server assigns, and then the columns, NAME=VALUE
    #[arg(required = true, num_args = 1.., allow_negative_numbers = true, value_name = "KEY… COLUMN")]
    words: Vec<String>,
    #[command(flatten)]
    server: TableServer,
}

pub(super) async fn ls(what: Ls) -> Result<(), ExitError> {
    let mut client = what.server.connect().await?;
    let listed: proto::ListTableResponse =
        call(&mut client, "ListTable", &proto::ListTableRequest {}).await?;
    let mut out = std::io::stdout().lock();
    for name in listed.table_names {
        writeln!(out, "{name}")?;
    }
    Ok(())
}

pub(super) async fn describe(what: Describe) -> Result<(), ExitError> {
    let mut client = what.server.connect().await?;
    let table = description(&mut client, &what.table).await?;
    let options = table.table_options;
    let key: Vec<String> = table.table_meta.key_columns.iter().map(column_shown).collect();
    let expires = match options.time_to_live {
        None | Some(-1) => "never".to_owned(),
        Some(seconds) => format!("after {seconds} seconds"),
    };
    println!("table      {}", table.table_meta.table_name);
    println!("key        {}", key.join(", "));
    println!("versions   {}", options.max_versions.unwrap_or(1));
    println!("expires    {expires}");
    println!("updates    {}", if options.allow_update == Some(false) { "refused" } else { "allowed" });
    Ok(())
}

fn column_shown(column: &proto::KeyColumn) -> String {
    let kind = match column.r#type() {
        proto::KeyColumnType::Integer => "integer",
        proto::KeyColumnType::String => "string",
        proto::KeyColumnType::Binary => "binary",
    };
    let assigned = if column.option.is_some() { ", assigned by the server" } else { "" };
    format!("{} ({kind}{assigned})", column.name)
}

pub(super) async fn get(what: Get) -> Result<(), ExitError> {
    let mut client = what.server.connect().await?;
    let columns = description(&mut client, &what.table).await?.table_meta.key_columns;
    let key = parts(&columns, &what.key)?;
    if key.len() < columns.len() {
        return Err(ExitError::usage(format!("the key has {} columns; name a value of each", columns.len())));
    }
    let request = proto::GetRowRequest {
        table_name: what.table,
        primary_key: Some(sent(key)),
        max_versions: Some(1),
        ..proto::GetRowRequest::default()
    };
    let answer: proto::GetRowResponse = call(&mut client, "GetRow", &request).await?;
    match rows_of(&answer.row)?.first() {
        Some(row) => println!("{}", shown(row)),
        None => return Err(ExitError::failed("there is no such row")),
    }
    Ok(())
}

pub(super) async fn range(what: Range) -> Result<(), ExitError> {
    let mut client = what.server.connect().await?;
    let columns = description(&mut client, &what.table).await?.table_meta.key_columns;
    let bound = |word: &Option<String>, otherwise: KeyPart| {
        let words: Vec<String> = what.prefix.iter().chain(word).cloned().collect();
        let mut key = parts(&columns, &words)?;
        // Below or above every row with these values; a value that is named ends the part before its rows.
        let rest = if word.is_some() { KeyPart::InfMin } else { otherwise };
        if what.backward && word.is_some() && key.len() == columns.len() {
            just_below(&mut key)?;
        }
        key.extend(columns[key.len()..].iter().map(|column| (column.name.clone(), rest.clone())));
        Ok::<_, ExitError>(key)
    };
    let (low, high) = (bound(&what.from, KeyPart::InfMin)?, bound(&what.before, KeyPart::InfMax)?);
    let (mut start, end) = if what.backward { (sent(high), sent(low)) } else { (sent(low), sent(high)) };
    let direction =
        if what.backward { proto::RangeDirection::Backward } else { proto::RangeDirection::Forward };
    let (mut out, mut left) = (std::io::stdout().lock(), what.limit);
    loop {
        let request = proto::GetRangeRequest {
            table_name: what.table.clone(),
            direction: Some(direction as i32),
            max_versions: Some(1),
            limit: Some(i32::try_from(left).unwrap_or(i32::MAX)),
            inclusive_start_primary_key: Some(start),
            exclusive_end_primary_key: Some(end.clone()),
            ..proto::GetRangeRequest::default()
        };
        let page: proto::GetRangeResponse = call(&mut client, "GetRange", &request).await?;
        let rows = rows_of(&page.rows)?;
        for row in &rows {
            writeln!(out, "{}", shown(row))?;
        }
        left = left.saturating_sub(u32::try_from(rows.len()).unwrap_or(u32::MAX));
        match page.next_start_primary_key {
            Some(next) if left > 0 => start = next,
            _ => return Ok(()),
        }
    }
}

pub(super) async fn put(what: Put) -> Result<(), ExitError> {
    let mut client = what.server.connect().await?;
    let columns = description(&mut client, &what.table).await?.table_meta.key_columns;
    if what.words.len() < columns.len() {
        return Err(ExitError::usage(format!("the key has {} columns; name a value of each", columns.len())));
    }
    let (key, cells) = what.words.split_at(columns.len());
    let cells = cells.iter().map(|word| column(word).map_err(ExitError::usage));
    let row =
        ReceivedRow { key: parts(&columns, key)?, cells: cells.collect::<Result<_, _>>()?, delete: false };
    let request = proto::PutRowRequest {
        table_name: what.table,
        row: Some(encode_sent(&row)),
        condition: Some(proto::Condition {
            row_existence: Some(proto::RowExistence::Ignore as i32),
            column_condition: None,
        }),
        return_content: Some(proto::ReturnContent {
            return_type: Some(proto::ReturnType::PrimaryKey as i32),
            return_column_names: Vec::new(),
        }),
        transaction_id: None,
    };
    let answer: proto::WriteRowResponse = call(&mut client, "PutRow", &request).await?;
    let rows = rows_of(answer.row.as_deref().unwrap_or_default())?;
    let put = rows.first().unwrap_or(&row);
    println!("{}", json!({ "key": key_shown(put) }));
    Ok(())
}

/// Backward, a range begins at its start and ends after its end: with a whole key, both are meant to be the key before.
fn just_below(key: &mut [(String, KeyPart)]) -> Result<(), ExitError> {
    match key.last_mut() {
        Some((_, KeyPart::Value(KeyValue::Integer(number)))) if *number > i64::MIN => {
            *number -= 1;
            Ok(())
        }
        Some((name, _)) => Err(ExitError::usage(format!(
            "--from and --before go with --backward where {name}, the last column of the key, is an integer"
        ))),
        None => Ok(()),
    }
}

async fn description(
    client: &mut TableConnection,
    table: &str,
) -> Result<proto::DescribeTableResponse, ExitError> {
    let request = proto::DescribeTableRequest { table_name: table.to_owned() };
    call(client, "DescribeTable", &request).await
}

async fn call<A: Message + Default>(
    client: &mut TableConnection,
    operation: &str,
    request: &impl Message,
) -> Result<A, ExitError> {
    let answer = client.call(operation, request.encode_to_vec()).await?;
    A::decode(&answer[..]).map_err(|why| ExitError::failed(format!("the answer cannot be read: {why}")))
}

/// The values of the first key columns.
fn parts(columns: &[proto::KeyColumn], words: &[String]) -> Result<Vec<(String, KeyPart)>, ExitError> {
    if words.len() > columns.len() {
        return Err(ExitError::usage(format!("the key has {} columns, not {}", columns.len(), words.len())));
    }
    let part = |(column, word): (&proto::KeyColumn, &String)| {
        key_part(column, word).map(|part| (column.name.clone(), part)).map_err(ExitError::usage)
    };
    columns.iter().zip(words).map(part).collect()
}

fn sent(key: Vec<(String, KeyPart)>) -> Vec<u8> {
    encode_sent(&ReceivedRow { key, cells: Vec::new(), delete: false })
}

fn rows_of(bytes: &[u8]) -> Result<Vec<ReceivedRow>, ExitError> {
    decode_rows(bytes).map_err(|why| ExitError::failed(format!("the answer cannot be read: {why}")))
}
