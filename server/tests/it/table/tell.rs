//! All tables as they are told, and the next row of one with an auto-increment key: the state before and after something happens.

use serde_json::Value;
use tidemark_table::KeyValue;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;

use crate::table::packages::scripts;
use crate::table::python::python;
use crate::table::wire::{assigned, put};
use crate::table::world::{World, output};

/// All tables and rows, as `tell.py` tells them.
pub(crate) async fn told(world: &World) -> Value {
    let command = python(&scripts().join("tell.py"), world).await;
    serde_json::from_str(&output(command).await).expect("JSON")
}

/// Puts a row into the table `assigned`, in the partition `group`; the number that it was given.
pub(crate) async fn put_next(world: &World, group: &str) -> i64 {
    let value = KeyPart::Value(KeyValue::String(group.to_owned()));
    let key = vec![("g".into(), value), ("id".into(), KeyPart::AutoIncrement)];
    let row = encode_sent(&ReceivedRow { key, cells: Vec::new(), delete: false });
    let request = proto::PutRowRequest { row: Some(row), ..put("assigned") };
    let done: proto::WriteRowResponse = world.call("PutRow", &request).await.message();
    assigned(&done.row.expect("the key"))
}
