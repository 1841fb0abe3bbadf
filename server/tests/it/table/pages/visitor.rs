//! Somebody with a browser that keeps one cookie and follows nothing by itself, and rows to look at.

use prost::Message as _;
use reqwest::header::HeaderMap;
use reqwest::{Method, redirect};
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;
use tidemark_table::{KeyValue, Value};

use crate::table::raw::Request;
use crate::table::world::{Key, World};

/// A browser.
pub(crate) struct Visitor {
    http: reqwest::Client,
    pub(crate) home: String,
    pub(crate) cookie: Option<String>,
}

/// A page, or what else came.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) html: String,
}

impl Visitor {
    /// One who is not signed in.
    pub(crate) fn of(world: &World) -> Visitor {
        let http = reqwest::Client::builder().redirect(redirect::Policy::none()).build().expect("a client");
        Visitor { http, home: world.server.address().to_owned(), cookie: None }
    }

    /// One who has signed in with this key.
    pub(crate) async fn with(world: &World, key: &Key) -> Visitor {
        let mut visitor = Visitor::of(world);
        let answer = visitor.sign_in(&key.id, &key.secret, "/tables").await;
        assert_eq!((answer.status, answer.header("location")), (303, "/tables"), "{}", answer.html);
        visitor.cookie = Some(answer.cookie().to_owned());
        visitor
    }

    /// The same with this cookie.
    pub(crate) fn holding(self, cookie: &str) -> Visitor {
        Visitor { cookie: Some(cookie.to_owned()), ..self }
    }

    /// Sends the card.
    pub(crate) async fn sign_in(&self, id: &str, secret: &str, next: &str) -> Page {
        let body = format!("access_key_id={id}&access_key_secret={secret}&next={next}");
        self.ask(Method::POST, "/tables/sign-in", &[("origin", &self.home)], body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.ask(Method::GET, path, &[], String::new()).await
    }

    /// A page that must be there.
    pub(crate) async fn sees(&self, path: &str) -> Page {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.html);
        page
    }

    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Page {
        let mut request = self.http.request(method, format!("{}{path}", self.home)).body(body);
        request = request.header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Page { status, headers, html: answer.text().await.expect("a text") }
    }
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }

    /// The part of the cookie that a browser sends back.
    pub(crate) fn cookie(&self) -> &str {
        self.header("set-cookie").split(';').next().unwrap_or_default()
    }

    /// The address behind a link to `rel`.
    pub(crate) fn link(&self, rel: &str) -> Option<String> {
        self.after(&format!("rel=\"{rel}\" href=\""), "\"")
    }

    /// The links of all rows.
    pub(crate) fn row_links(&self) -> Vec<String> {
        let parts = self.html.split("<th scope=\"row\"><a href=\"").skip(1);
        parts.map(|part| unescaped(part.split('"').next().unwrap_or_default())).collect()
    }

    /// The text between the first `start` and the next `end`.
    pub(crate) fn after(&self, start: &str, end: &str) -> Option<String> {
        let (_, rest) = self.html.split_once(start)?;
        rest.split(end).next().map(unescaped)
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.html.contains(text)
    }
}

pub(crate) fn unescaped(html: &str) -> String {
    let marks = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    marks.iter().fold(html.to_owned(), |text, (mark, plain)| text.replace(mark, plain))
}

/// Makes a table whose key has these columns; `+` before a name is auto-increment.
pub(crate) async fn make(world: &World, name: &str, key: &[(&str, proto::KeyColumnType)], versions: i32) {
    let column = |(name, kind): &(&str, proto::KeyColumnType)| proto::KeyColumn {
        name: name.trim_start_matches('+').to_owned(),
        r#type: Some(*kind as i32),
        option: name.starts_with('+').then_some(proto::KeyColumnOption::AutoIncrement as i32),
    };
    let unit = proto::CapacityUnit { read: 0, write: 0 };
    let request = proto::CreateTableRequest {
        table_meta: Some(proto::TableMeta {
            table_name: name.to_owned(),
            key_columns: key.iter().map(column).collect(),
            ..proto::TableMeta::default()
        }),
        reserved_throughput: Some(proto::ReservedThroughput { capacity_unit: unit }),
        table_options: Some(proto::Options {
            time_to_live: Some(172_800),
            max_versions: Some(versions),
            ..proto::Options::default()
        }),
        ..proto::CreateTableRequest::default()
    };
    world.call("CreateTable", &request).await.message::<proto::CreateTableResponse>();
}

/// A value of a key column.
pub(crate) fn text(value: &str) -> KeyPart {
    KeyPart::Value(KeyValue::String(value.to_owned()))
}

/// Puts a row.
pub(crate) async fn put(world: &World, table: &str, key: &[(&str, KeyPart)], cells: &[(&str, Value)]) {
    put_as(world, &world.key, table, key, cells).await;
}

/// Puts a row by another access key.
pub(crate) async fn put_as(
    world: &World,
    access_key: &Key,
    table: &str,
    key: &[(&str, KeyPart)],
    cells: &[(&str, Value)],
) {
    let request = proto::PutRowRequest {
        table_name: table.to_owned(),
        row: Some(sent(key, cells)),
        condition: Some(proto::Condition { row_existence: Some(0), column_condition: None }),
        return_content: None,
        transaction_id: None,
    };
    let request = Request::new(access_key, "PutRow", request.encode_to_vec()).signed(access_key);
    world.send(&request).await.message::<proto::WriteRowResponse>();
}

/// Puts newer versions of columns into a row.
pub(crate) async fn update(world: &World, table: &str, key: &[(&str, KeyPart)], cells: &[(&str, Value)]) {
    let request = proto::UpdateRowRequest {
        table_name: table.to_owned(),
        row_change: Some(sent(key, cells)),
        condition: Some(proto::Condition { row_existence: Some(0), column_condition: None }),
        return_content: None,
        transaction_id: None,
    };
    world.call("UpdateRow", &request).await.message::<proto::WriteRowResponse>();
}

fn sent(key: &[(&str, KeyPart)], cells: &[(&str, Value)]) -> Vec<u8> {
    let cell = |(name, value): &(&str, Value)| ReceivedCell {
        name: (*name).to_owned(),
        value: Some(value.clone()),
        operation: None,
        timestamp: None,
    };
    let key = key.iter().map(|(name, part)| ((*name).to_owned(), part.clone())).collect();
    encode_sent(&ReceivedRow { key, cells: cells.iter().map(cell).collect(), delete: false })
}
