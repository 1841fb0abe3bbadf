//! Reads the rows and keys that clients send.
//!
//! Some clients put zero bytes after the last row. Bytes after the checksum of the row are therefore not looked at, unless they begin
//! another row.

use super::{CellOperation, HEADER, KeyPart, MAX_CELLS, MAX_KEY_PARTS, ReceivedCell, ReceivedRow, kind, tag};
use crate::error::{ErrorCode, TableError};
use crate::value::{KeyValue, Value};
use crate::wire::crc::Crc8;

/// A row.
///
/// # Errors
///
/// The row is cut off or malformed, a checksum is wrong, a name or a text is not UTF-8, a double is not finite, there are more than
/// [`MAX_KEY_PARTS`] columns in the key or more than [`MAX_CELLS`] cells, or a second row follows.
pub fn decode_row(bytes: &[u8]) -> Result<ReceivedRow, TableError> {
    let mut input = begin(bytes)?;
    let row = next_row(&mut input)?;
    if input.skip_if(tag::KEY) {
        return Err(TableError::invalid("The row is malformed: another row follows it."));
    }
    Ok(row)
}

/// Rows, as clients are answered; no bytes: none.
///
/// # Errors
///
/// As for [`decode_row`], but for the second row.
pub fn decode_rows(bytes: &[u8]) -> Result<Vec<ReceivedRow>, TableError> {
    let mut rows = Vec::new();
    if bytes.is_empty() {
        return Ok(rows);
    }
    let mut input = begin(bytes)?;
    loop {
        rows.push(next_row(&mut input)?);
        if input.at == bytes.len() {
            return Ok(rows);
        }
    }
}

fn begin(bytes: &[u8]) -> Result<Input<'_>, TableError> {
    let mut input = Input { bytes, at: 0 };
    if u32::from_le_bytes(input.take()?) != HEADER {
        return Err(TableError::invalid(
            "The row is malformed: it does not begin with the header of PlainBuffer.",
        ));
    }
    Ok(input)
}

fn next_row(input: &mut Input<'_>) -> Result<ReceivedRow, TableError> {
    let mut checksum = Crc8::default();
    let mut key = Vec::new();
    if input.skip_if(tag::KEY) {
        while let Some(cell) = input.cell()? {
            checksum = checksum.byte(cell.checksum);
            if key.len() == MAX_KEY_PARTS {
                return Err(TableError::invalid(
                    "The number of primary key columns must be in range: [1, 4].",
                ));
            }
            key.push(cell.key()?);
        }
    }
    let mut cells = Vec::new();
    let mut count = 0;
    if input.skip_if(tag::ATTRIBUTES) {
        while let Some(cell) = input.cell()? {
            checksum = checksum.byte(cell.checksum);
            count += 1;
            if count <= MAX_CELLS {
                cells.push(cell.attribute()?);
            }
        }
    }
    if count > MAX_CELLS {
        return Err(TableError::invalid(format!(
            "The number of attribute columns exceeds the limit, limit count: {MAX_CELLS}, column count: {count}."
        )));
    }
    let delete = input.skip_if(tag::DELETE);
    let checksum = checksum.byte(u8::from(delete)).value();
    input.expect(tag::ROW_CHECKSUM, "the checksum of the row")?;
    if input.byte()? != checksum {
        return Err(TableError::invalid("The checksum of the row is wrong."));
    }
    Ok(ReceivedRow { key, cells, delete })
}

/// A key: a row that has nothing else.
///
/// # Errors
///
/// As for [`decode_row`]; or it has cells, or the marker of a row to delete.
pub fn decode_key(bytes: &[u8]) -> Result<Vec<(String, KeyPart)>, TableError> {
    let row = decode_row(bytes)?;
    if !row.cells.is_empty() || row.delete {
        return Err(TableError::invalid(
            "The primary key is malformed: it comes with attribute columns or a delete marker.",
        ));
    }
    Ok(row.key)
}

/// A type and its data without a length before them, as filters have values; `column` is named in errors.
pub(in crate::wire) fn bare_value(bytes: &[u8], column: &str) -> Result<Value, TableError> {
    let mut input = Input { bytes, at: 0 };
    let raw = input.value()?;
    if input.at != bytes.len() {
        return Err(input.malformed("bytes follow the value"));
    }
    raw.attribute(column)
}

/// The bytes that are left to read.
struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A cell as it lies there.
struct RawCell<'a> {
    name: &'a str,
    value: Option<RawValue<'a>>,
    operation: Option<CellOperation>,
    timestamp: Option<i64>,
    checksum: u8,
}

/// A value as it lies there: its type, and its data without a length.
#[derive(Clone, Copy)]
struct RawValue<'a> {
    kind: u8,
    data: &'a [u8],
}

impl<'a> Input<'a> {
    fn malformed(&self, what: &str) -> TableError {
        TableError::invalid(format!("The row is malformed at byte {}: {what}.", self.at))
    }

    fn slice(&mut self, length: usize) -> Result<&'a [u8], TableError> {
        let rest = &self.bytes[self.at..];
        let Some(slice) = rest.get(..length) else {
            return Err(
                self.malformed(&format!("{length} bytes should follow, and there are {}", rest.len()))
            );
        };
        self.at += length;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], TableError> {
        let mut array = [0; N];
        array.copy_from_slice(self.slice(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, TableError> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// A length, and that many bytes.
    fn sized(&mut self) -> Result<&'a [u8], TableError> {
        let length = u32::from_le_bytes(self.take()?);
        self.slice(length as usize)
    }

    fn skip_if(&mut self, tag: u8) -> bool {
        let there = self.bytes.get(self.at) == Some(&tag);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, tag: u8, what: &str) -> Result<(), TableError> {
        if self.skip_if(tag) { Ok(()) } else { Err(self.malformed(&format!("{what} should be here"))) }
    }

    /// The next cell of this section, if it has one; its checksum is right.
    fn cell(&mut self) -> Result<Option<RawCell<'a>>, TableError> {
        if !self.skip_if(tag::CELL) {
            return Ok(None);
        }
        self.expect(tag::NAME, "the name of a column")?;
        let name = self.sized()?;
        let mut crc = Crc8::default().bytes(name);
        let Ok(name) = str::from_utf8(name) else {
            return Err(self.malformed("the name of a column is not UTF-8"));
        };
        let value = if self.skip_if(tag::VALUE) {
            let length = u32::from_le_bytes(self.take()?) as usize;
            let start = self.at;
            let value = self.value()?;
            if self.at - start != length {
                return Err(self.malformed("the length of a value does not match its data"));
            }
            // The length within the value counts, that of the whole does not.
            crc = crc.bytes(&self.bytes[start..self.at]);
            Some(value)
        } else {
            None
        };
        let mut operation_byte = None;
        let operation = if self.skip_if(tag::OPERATION) {
            let byte = self.byte()?;
            operation_byte = Some(byte);
            let unknown = || self.malformed(&format!("{byte} is not an operation of a cell"));
            Some(CellOperation::from_code(byte).ok_or_else(unknown)?)
        } else {
            None
        };
        let timestamp = if self.skip_if(tag::TIMESTAMP) {
            let bytes = self.take()?;
            crc = crc.bytes(&bytes);
            Some(i64::from_le_bytes(bytes))
        } else {
            None
        };
        // The operation lies before the timestamp, and counts after it.
        if let Some(byte) = operation_byte {
            crc = crc.byte(byte);
        }
        self.expect(tag::CELL_CHECKSUM, "the checksum of a cell")?;
        let checksum = self.byte()?;
        if checksum != crc.value() {
            return Err(TableError::invalid(format!(
                "The checksum of the cell of column '{name}' is wrong."
            )));
        }
        Ok(Some(RawCell { name, value, operation, timestamp, checksum }))
    }

    fn value(&mut self) -> Result<RawValue<'a>, TableError> {
        let kind = self.byte()?;
        let data = match kind {
            kind::INTEGER | kind::DOUBLE => self.slice(8)?,
            kind::BOOLEAN => self.slice(1)?,
            kind::STRING | kind::BLOB => self.sized()?,
            kind::NULL | kind::INF_MIN | kind::INF_MAX | kind::AUTO_INCREMENT => &[],
            _ => return Err(self.malformed(&format!("{kind} is not a type of a value"))),
        };
        Ok(RawValue { kind, data })
    }
}

impl RawCell<'_> {
    fn key(&self) -> Result<(String, KeyPart), TableError> {
        let Some(value) = &self.value else {
            return Err(TableError::invalid(format!("The primary key column '{}' has no value.", self.name)));
        };
        if self.operation.is_some() || self.timestamp.is_some() {
            return Err(TableError::invalid(format!(
                "The primary key column '{}' comes with an operation or a timestamp.",
                self.name
            )));
        }
        Ok((self.name.to_owned(), value.key(self.name)?))
    }

    fn attribute(&self) -> Result<ReceivedCell, TableError> {
        Ok(ReceivedCell {
            name: self.name.to_owned(),
            value: self.value.map(|value| value.attribute(self.name)).transpose()?,
            operation: self.operation,
            timestamp: self.timestamp,
        })
    }
}

impl RawValue<'_> {
    fn key(self, column: &str) -> Result<KeyPart, TableError> {
        Ok(match self.kind {
            kind::INTEGER => KeyPart::Value(KeyValue::Integer(self.integer())),
            kind::STRING => KeyPart::Value(KeyValue::String(self.text(column)?)),
            kind::BLOB => KeyPart::Value(KeyValue::Binary(self.data.to_vec())),
            kind::INF_MIN => KeyPart::InfMin,
            kind::INF_MAX => KeyPart::InfMax,
            kind::AUTO_INCREMENT => KeyPart::AutoIncrement,
            _ => {
                let message = format!("{} is an invalid type for the primary key.", self.kind_name());
                return Err(TableError::new(ErrorCode::InvalidPK, message));
            }
        })
    }

    fn attribute(self, column: &str) -> Result<Value, TableError> {
        Ok(match self.kind {
            kind::INTEGER => Value::Integer(self.integer()),
            kind::DOUBLE => {
                let value = f64::from_bits(self.integer().cast_unsigned());
                if !value.is_finite() {
                    let message =
                        format!("The value of column '{column}' is {value}; doubles must be finite.");
                    return Err(TableError::invalid(message));
                }
                Value::Double(value)
            }
            kind::BOOLEAN => match self.data {
                [0] => Value::Boolean(false),
                [1] => Value::Boolean(true),
                _ => {
                    let message =
                        format!("The value of column '{column}' is a boolean that is neither 0 nor 1.");
                    return Err(TableError::invalid(message));
                }
            },
            kind::STRING => Value::String(self.text(column)?),
            kind::BLOB => Value::Blob(self.data.to_vec()),
            _ => {
                let message =
                    format!("{} is an invalid type for the attribute column '{column}'.", self.kind_name());
                return Err(TableError::invalid(message));
            }
        })
    }

    /// The data of the types that have 8 bytes.
    fn integer(self) -> i64 {
        self.data.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes))
    }

    fn text(self, column: &str) -> Result<String, TableError> {
        match str::from_utf8(self.data) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(TableError::invalid(format!(
                "The value of column '{column}' is a string that is not UTF-8."
            ))),
        }
    }

    /// As errors name types.
    fn kind_name(self) -> &'static str {
        match self.kind {
            kind::INTEGER => "VT_INTEGER",
            kind::DOUBLE => "VT_DOUBLE",
            kind::BOOLEAN => "VT_BOOLEAN",
            kind::STRING => "VT_STRING",
            kind::NULL => "VT_NULL",
            kind::BLOB => "VT_BLOB",
            kind::INF_MIN => "VT_INF_MIN",
            kind::INF_MAX => "VT_INF_MAX",
            _ => "VT_AUTO_INCREMENT",
        }
    }
}
