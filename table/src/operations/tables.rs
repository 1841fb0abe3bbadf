//! Operations that make, tell, change and delete tables.

use std::collections::HashSet;

use prost::Message;

use super::bounds::count;
use super::{check, consumed, decoded, unsupported};
use crate::rows::capacity::Consumed;
use crate::wire::plain_buffer::encode_key;
use crate::wire::proto;
use crate::{
    ColumnType, KeyColumnDefinition, KeyType, PrimaryKey, ReservedThroughput, TableDefinition, TableError,
    TableOptions,
};

/// The most columns of a key.
const MAX_KEY_COLUMNS: usize = 4;
/// The most columns that a table declares.
const MAX_DECLARED: usize = 32;
/// The shortest TTL, in seconds.
const MIN_TTL: i32 = 86_400;
/// The unit of a split size, unless a request gives another: 100 MB.
const SPLIT_UNIT: i64 = 100 << 20;

/// The table that CreateTable asks for.
pub fn decode_create(body: &[u8]) -> Result<TableDefinition, TableError> {
    let columns = count(body, &[1, 2])?;
    if !(1..=MAX_KEY_COLUMNS).contains(&columns) {
        return Err(TableError::invalid("The number of primary key columns must be in range: [1, 4]."));
    }
    if count(body, &[1, 3])? > MAX_DECLARED {
        return Err(TableError::invalid("The number of defined columns must be in range: [0, 32]."));
    }
    if count(body, &[1, 4])? + count(body, &[7])? > 0 {
        return Err(unsupported("CreateTable with an index"));
    }
    if count(body, &[4])? > 0 {
        return Err(unsupported("CreateTable with partitions"));
    }
    let request: proto::CreateTableRequest = decoded(body)?;
    let meta = request.table_meta.ok_or_else(|| TableError::invalid("The table meta is missing."))?;
    check::table_name(&meta.table_name)?;
    no_stream(request.stream_specification.as_ref(), "CreateTable")?;
    if request.encryption_specification.and_then(|encryption| encryption.enable) == Some(true) {
        return Err(unsupported("CreateTable with encryption"));
    }
    if request.enable_local_transactions == Some(true) {
        return Err(unsupported("CreateTable with local transactions"));
    }
    let (key, columns) = (key_columns(&meta)?, declared_columns(&meta)?);
    let options = request.table_options.unwrap_or_default();
    if options.update_full_row == Some(true) {
        return Err(unsupported("CreateTable with updateFullRow"));
    }
    Ok(TableDefinition {
        name: meta.table_name,
        key,
        columns,
        options: changed(TableOptions::default(), &options)?,
        reserved: reserved(request.reserved_throughput)?,
    })
}

fn key_columns(meta: &proto::TableMeta) -> Result<Vec<KeyColumnDefinition>, TableError> {
    let (mut names, mut columns) = (HashSet::new(), Vec::new());
    for proto::KeyColumn { name, r#type, option } in &meta.key_columns {
        check::column_name(name)?;
        if !names.insert(name) {
            return Err(TableError::invalid(format!("Duplicated primary key name: '{name}'.")));
        }
        let kind = match r#type.map(proto::KeyColumnType::try_from) {
            Some(Ok(proto::KeyColumnType::Integer)) => KeyType::Integer,
            Some(Ok(proto::KeyColumnType::String)) => KeyType::String,
            Some(Ok(proto::KeyColumnType::Binary)) => KeyType::Binary,
            _ => {
                let message =
                    format!("The type of primary key column '{name}' must be INTEGER, STRING or BINARY.");
                return Err(TableError::invalid(message));
            }
        };
        let auto_increment = match option.map(proto::KeyColumnOption::try_from) {
            None => false,
            Some(Ok(proto::KeyColumnOption::AutoIncrement)) => true,
            Some(Err(_)) => {
                let message = format!("The option of primary key column '{name}' is not known.");
                return Err(TableError::invalid(message));
            }
        };
        columns.push(KeyColumnDefinition { name: name.clone(), kind, auto_increment });
    }
    if columns.first().is_some_and(|column| column.auto_increment) {
        let message = format!("First primary key can't be auto increment, table: {}.", meta.table_name);
        return Err(TableError::invalid(message));
    }
    let assigned: Vec<_> = columns.iter().filter(|column| column.auto_increment).collect();
    if assigned.iter().any(|column| column.kind != KeyType::Integer) {
        return Err(TableError::invalid("AUTO_INCREMENT primary key must be integer."));
    }
    if assigned.len() > 1 {
        return Err(TableError::invalid("AUTO_INCREMENT primary key count must <= 1."));
    }
    Ok(columns)
}

fn declared_columns(meta: &proto::TableMeta) -> Result<Vec<(String, ColumnType)>, TableError> {
    let mut names: HashSet<&String> = meta.key_columns.iter().map(|column| &column.name).collect();
    let mut columns = Vec::new();
    for proto::AttributeColumn { name, r#type } in &meta.attribute_columns {
        check::column_name(name)?;
        if !names.insert(name) {
            return Err(TableError::invalid(format!("Duplicated defined column name: '{name}'.")));
        }
        let kind = match r#type.map(proto::AttributeType::try_from) {
            Some(Ok(proto::AttributeType::Integer)) => ColumnType::Integer,
            Some(Ok(proto::AttributeType::Double)) => ColumnType::Double,
            Some(Ok(proto::AttributeType::Boolean)) => ColumnType::Boolean,
            Some(Ok(proto::AttributeType::String)) => ColumnType::String,
            Some(Ok(proto::AttributeType::Blob)) => ColumnType::Blob,
            _ => {
                let message = format!(
                    "The type of defined column '{name}' must be INTEGER, DOUBLE, BOOLEAN, STRING or BLOB."
                );
                return Err(TableError::invalid(message));
            }
        };
        columns.push((name.clone(), kind));
    }
    Ok(columns)
}

fn no_stream(stream: Option<&proto::StreamSpecification>, operation: &str) -> Result<(), TableError> {
    match stream.and_then(|stream| stream.enable) {
        Some(true) => Err(unsupported(&format!("{operation} with a stream"))),
        _ => Ok(()),
    }
}

/// The options with what a request says of them.
fn changed(mut options: TableOptions, with: &proto::Options) -> Result<TableOptions, TableError> {
    if let Some(seconds) = with.time_to_live {
        if seconds != -1 && seconds < MIN_TTL {
            let message =
                format!("The time to live must be -1, or at least {MIN_TTL} seconds; it is {seconds}.");
            return Err(TableError::invalid(message));
        }
        options.time_to_live = seconds;
    }
    if let Some(count) = with.max_versions {
        if count < 1 {
            let message = format!("The max versions must be greater than 0, they are {count}.");
            return Err(TableError::invalid(message));
        }
        options.max_versions = count;
    }
    if let Some(seconds) = with.deviation {
        if seconds < 1 {
            let message =
                format!("The deviation of a cell's version must be at least 1 second, it is {seconds}.");
            return Err(TableError::invalid(message));
        }
        options.deviation_seconds = seconds;
    }
    if let Some(allow) = with.allow_update {
        options.allow_update = allow;
    }
    Ok(options)
}

fn reserved(throughput: Option<proto::ReservedThroughput>) -> Result<ReservedThroughput, TableError> {
    let Some(throughput) = throughput else { return Ok(ReservedThroughput::default()) };
    let proto::CapacityUnit { read, write } = throughput.capacity_unit;
    not_negative(ReservedThroughput { read, write })
}

fn not_negative(reserved: ReservedThroughput) -> Result<ReservedThroughput, TableError> {
    let ReservedThroughput { read, write } = reserved;
    if read < 0 || write < 0 {
        let message = format!("The reserved throughput must not be negative: read {read}, write {write}.");
        return Err(TableError::invalid(message));
    }
    Ok(reserved)
}

/// An UpdateTable request.
#[derive(Clone, Debug)]
pub struct TableChange {
    options: Option<proto::Options>,
    reserved: Option<proto::CapacityUnitChange>,
}

/// The table, and its change.
pub fn decode_update(body: &[u8]) -> Result<(String, TableChange), TableError> {
    let request: proto::UpdateTableRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    no_stream(request.stream_specification.as_ref(), "UpdateTable")?;
    if request.table_options.as_ref().is_some_and(|options| options.update_full_row.is_some()) {
        return Err(TableError::invalid("The table options to change can't contain updateFullRow."));
    }
    let reserved = request.reserved_throughput.and_then(|throughput| throughput.capacity_unit);
    let reserved = reserved.filter(|unit| unit.read.is_some() || unit.write.is_some());
    if request.table_options.is_none() && reserved.is_none() {
        let message = "UpdateTable needs table options or a reserved throughput to change.";
        return Err(TableError::invalid(message));
    }
    Ok((request.table_name, TableChange { options: request.table_options, reserved }))
}

impl TableChange {
    /// The table from then on.
    pub fn of(&self, mut definition: TableDefinition) -> Result<TableDefinition, TableError> {
        if let Some(options) = &self.options {
            definition.options = changed(definition.options, options)?;
        }
        if let Some(proto::CapacityUnitChange { read, write }) = self.reserved {
            let before = definition.reserved;
            definition.reserved = not_negative(ReservedThroughput {
                read: read.unwrap_or(before.read),
                write: write.unwrap_or(before.write),
            })?;
        }
        Ok(definition)
    }
}

/// The table of a DescribeTable.
pub fn decode_describe(body: &[u8]) -> Result<String, TableError> {
    let request: proto::DescribeTableRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    Ok(request.table_name)
}

/// The table of a DeleteTable.
pub fn decode_delete(body: &[u8]) -> Result<String, TableError> {
    let request: proto::DeleteTableRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    Ok(request.table_name)
}

/// A ComputeSplitPointsBySize request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRequest {
    /// How many bytes of keys and rows a part has; 1 or more.
    pub bytes: u64,
    /// At most this number of points.
    pub most: usize,
}

/// The table, and how to split it.
pub fn decode_split(body: &[u8]) -> Result<(String, SplitRequest), TableError> {
    let request: proto::ComputeSplitPointsBySizeRequest = decoded(body)?;
    check::table_name(&request.table_name)?;
    let unit = request.split_size_unit.unwrap_or(SPLIT_UNIT);
    let bytes = request.split_size.unwrap_or(0).checked_mul(unit).map(u64::try_from);
    let (Some(Ok(bytes @ 1..)), true) = (bytes, unit > 0) else {
        return Err(TableError::invalid("The split size must be greater than 0."));
    };
    let most = match request.split_point_limit {
        None => SplitRequest::MOST,
        Some(limit) => match usize::try_from(limit) {
            Ok(limit) if limit > 0 => limit.min(SplitRequest::MOST),
            _ => return Err(TableError::invalid("The limit must be greater than 0.")),
        },
    };
    Ok((request.table_name, SplitRequest { bytes, most }))
}

impl SplitRequest {
    /// The most points of an answer.
    pub const MOST: usize = 1_000;
}

/// The answer to CreateTable.
pub fn answer_create() -> Vec<u8> {
    proto::CreateTableResponse {}.encode_to_vec()
}

/// The answer to DeleteTable.
pub fn answer_delete() -> Vec<u8> {
    proto::DeleteTableResponse {}.encode_to_vec()
}

/// The answer to ListTable.
pub fn answer_list(table_names: Vec<String>) -> Vec<u8> {
    proto::ListTableResponse { table_names }.encode_to_vec()
}

/// The answer to DescribeTable. `created_at` in milliseconds since 1970 UTC.
pub fn answer_describe(definition: &TableDefinition, created_at: i64) -> Vec<u8> {
    let answer = proto::DescribeTableResponse {
        table_meta: meta(definition),
        reserved_throughput_details: throughput_details(definition.reserved, created_at),
        table_options: options(&definition.options),
        table_status: proto::TableStatus::Active as i32,
        stream_details: Some(no_stream_details()),
        shard_splits: Vec::new(),
        creation_time: Some(created_at.saturating_mul(1_000)),
    };
    answer.encode_to_vec()
}

/// The answer to UpdateTable. `created_at` in milliseconds since 1970 UTC.
pub fn answer_update(definition: &TableDefinition, created_at: i64) -> Vec<u8> {
    let answer = proto::UpdateTableResponse {
        reserved_throughput_details: throughput_details(definition.reserved, created_at),
        table_options: options(&definition.options),
        stream_details: Some(no_stream_details()),
    };
    answer.encode_to_vec()
}

/// The answer to ComputeSplitPointsBySize: where each part but the first begins.
pub fn answer_split(definition: &TableDefinition, units: Consumed, points: &[PrimaryKey]) -> Vec<u8> {
    let parts = points.len() as i64 + 1;
    let answer = proto::ComputeSplitPointsBySizeResponse {
        consumed: consumed(units),
        key_columns: meta(definition).key_columns,
        split_points: points.iter().map(|key| encode_key(key)).collect(),
        locations: vec![proto::SplitLocation { location: "local".to_owned(), repeat: parts }],
    };
    answer.encode_to_vec()
}

fn meta(definition: &TableDefinition) -> proto::TableMeta {
    let key_column = |column: &KeyColumnDefinition| {
        let kind = match column.kind {
            KeyType::Integer => proto::KeyColumnType::Integer,
            KeyType::String => proto::KeyColumnType::String,
            KeyType::Binary => proto::KeyColumnType::Binary,
        };
        let option = column.auto_increment.then_some(proto::KeyColumnOption::AutoIncrement as i32);
        proto::KeyColumn { name: column.name.clone(), r#type: Some(kind as i32), option }
    };
    let declared = |(name, kind): &(String, ColumnType)| {
        let kind = match kind {
            ColumnType::Integer => proto::AttributeType::Integer,
            ColumnType::Double => proto::AttributeType::Double,
            ColumnType::Boolean => proto::AttributeType::Boolean,
            ColumnType::String => proto::AttributeType::String,
            ColumnType::Blob => proto::AttributeType::Blob,
        };
        proto::AttributeColumn { name: name.clone(), r#type: Some(kind as i32) }
    };
    proto::TableMeta {
        table_name: definition.name.clone(),
        key_columns: definition.key.iter().map(key_column).collect(),
        attribute_columns: definition.columns.iter().map(declared).collect(),
        indexes: Vec::new(),
    }
}

fn options(options: &TableOptions) -> proto::Options {
    proto::Options {
        time_to_live: Some(options.time_to_live),
        max_versions: Some(options.max_versions),
        bloom_filter_type: None,
        block_size: None,
        deviation: Some(options.deviation_seconds),
        allow_update: Some(options.allow_update),
        update_full_row: None,
    }
}

fn throughput_details(reserved: ReservedThroughput, created_at: i64) -> proto::ReservedThroughputDetails {
    let ReservedThroughput { read, write } = reserved;
    proto::ReservedThroughputDetails {
        capacity_unit: proto::CapacityUnit { read, write },
        last_increase_time: created_at / 1_000,
        last_decrease_time: None,
    }
}

fn no_stream_details() -> proto::StreamDetails {
    proto::StreamDetails {
        enable: false,
        stream_id: None,
        expiration_time: None,
        last_enable_time: None,
        columns_to_get: Vec::new(),
    }
}
