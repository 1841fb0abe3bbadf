//! The pages that show tables of other programs: plain data in, HTML out. The contents of rows came from strangers, and are always
//! text here.

use askama::Template;

use crate::filters;
use crate::languages::Language;
use crate::views::render;

/// The card with which one opens tables by an access key.
#[derive(Template)]
#[template(path = "tables/sign_in.html")]
pub struct TablesSignIn<'a> {
    /// The id that was typed.
    pub key_id: &'a str,
    /// Where to go afterwards.
    pub next: &'a str,
    /// Why it did not work, or why it is asked for again.
    pub problem: Option<&'a str>,
}

/// The reader of a page.
#[derive(Clone, Copy, Debug)]
pub struct TablesReader<'a> {
    /// The instance whose tables are shown.
    pub instance: &'a str,
    /// The id of the access key.
    pub key_id: &'a str,
}

/// A failure, on a card of its own: for somebody who looks at tables or at the pages of operators, or wants to.
#[derive(Template)]
#[template(path = "tables/failure.html")]
pub struct CardFailure<'a> {
    /// HTTP status of the answer.
    pub status: u16,
    /// The failure, in a few words.
    pub title: &'a str,
    /// The remedy, in a sentence. May hold code between backticks.
    pub detail: &'a str,
    /// The way on: an address and its name.
    pub on: Option<(&'a str, &'a str)>,
}

/// All tables of an instance.
#[derive(Template)]
#[template(path = "tables/list.html")]
pub struct TableList<'a> {
    /// The reader.
    pub reader: TablesReader<'a>,
    /// The tables.
    pub tables: &'a [TableAbout],
}

/// The description of a table.
#[derive(Clone, Debug, Default)]
pub struct TableAbout {
    /// Its name: letters, digits and underscores.
    pub name: String,
    /// Whether it is the chat's.
    pub is_inbox: bool,
    /// The columns of its key.
    pub key: Vec<KeyColumn>,
    /// The attribute columns that it declares, and their types.
    pub declared: Vec<(String, &'static str)>,
    /// How long values are kept, in words.
    pub time_to_live: String,
    /// Versions of a column that are kept.
    pub max_versions: i32,
    /// By how much a given timestamp may differ from the server's clock, in words.
    pub deviation: String,
    /// Whether UpdateRow is allowed.
    pub allow_update: bool,
    /// When it was made.
    pub created_at: Option<String>,
    /// A command that puts a row into it.
    pub example: String,
}

/// A column of a key.
#[derive(Clone, Debug, Default)]
pub struct KeyColumn {
    /// Its name.
    pub name: String,
    /// Its type, in a word.
    pub kind: &'static str,
    /// Whether the server assigns its values.
    pub auto_increment: bool,
}

/// One table: what it is, and some of its rows.
#[derive(Template)]
#[template(path = "tables/table.html")]
pub struct TablePage<'a> {
    /// The reader.
    pub reader: TablesReader<'a>,
    /// The table.
    pub table: &'a TableAbout,
    /// The form that says where to look.
    pub fields: &'a [KeyField],
    /// Whether the form asks for the rows up to the key, and not for those from it on.
    pub upward: bool,
    /// The rows; `None`: the form was filled in wrongly.
    pub rows: Option<&'a ShownRows>,
}

/// A field of the form, for a column of the key.
#[derive(Clone, Debug, Default)]
pub struct KeyField {
    /// The name of the field.
    pub id: &'static str,
    /// The column.
    pub column: KeyColumn,
    /// The typed text.
    pub value: String,
    /// The problem with it.
    pub problem: Option<String>,
    /// Whether the cursor goes there at first.
    pub focus: bool,
}

/// Some rows of a table.
#[derive(Clone, Debug, Default)]
pub struct ShownRows {
    /// Which rows these are, in words.
    pub caption: String,
    /// The attribute columns that are shown.
    pub columns: Vec<String>,
    /// Whether some row has more columns.
    pub has_more: bool,
    /// The rows.
    pub lines: Vec<RowLine>,
    /// Capacity units that were read for them.
    pub units: i32,
    /// The address of the rows before these.
    pub earlier: Option<String>,
    /// The address of the rows after these.
    pub later: Option<String>,
    /// Whether these are the first rows of the table.
    pub at_start: bool,
    /// Whether these are the last ones.
    pub at_end: bool,
}

/// One row among others.
#[derive(Clone, Debug, Default)]
pub struct RowLine {
    /// Its address.
    pub href: String,
    /// The values of its key.
    pub key: Vec<Shown>,
    /// The newest value of each column that is shown, if it has one.
    pub cells: Vec<Option<Shown>>,
    /// Columns that it has beside them.
    pub more: usize,
}

/// A value, as far as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// Its beginning.
    pub text: String,
    /// Its type, in a word, which is also its class in the style.
    pub kind: &'static str,
    /// How long it is, in words, where not all of it is shown.
    pub whole: Option<String>,
}

impl Shown {
    /// Which way it runs: as its own letters say, if it is a text.
    fn direction(&self) -> &'static str {
        if self.kind == "string" { "auto" } else { "ltr" }
    }
}

/// One row with all that it has.
#[derive(Template)]
#[template(path = "tables/row.html")]
pub struct RowPage<'a> {
    /// The reader.
    pub reader: TablesReader<'a>,
    /// The table.
    pub table: &'a TableAbout,
    /// The columns of the key, each with its value.
    pub key: &'a [(KeyColumn, Shown)],
    /// Its cells; `None`: there is no such row.
    pub cells: Option<&'a [CellLine]>,
    /// Capacity units that were read for it.
    pub units: i32,
    /// The versions that are not shown: how many, and the address of the first column of them.
    pub rest: Option<(usize, Option<&'a str>)>,
    /// The address of the rows from this one on.
    pub around: &'a str,
}

/// One version of a column.
#[derive(Clone, Debug, Default)]
pub struct CellLine {
    /// The column.
    pub name: String,
    /// The value.
    pub value: Shown,
    /// When it was written, in UTC; `None`: beyond the calendar.
    pub time: Option<String>,
    /// The same in milliseconds since 1970.
    pub timestamp: i64,
}

/// Renders the card.
pub fn tables_sign_in(view: &TablesSignIn<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders what went wrong.
pub fn card_failure(view: &CardFailure<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders the list of tables.
pub fn table_list(view: &TableList<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders one table.
pub fn table_page(view: &TablePage<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders one row.
pub fn row_page(view: &RowPage<'_>) -> String {
    render(view, Language::ENGLISH)
}
