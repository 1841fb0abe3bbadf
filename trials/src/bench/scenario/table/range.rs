//! `table-range`: pages of GetRange over ten million rows, on both databases, against bare loops that read, encode and hash the same rows.

use rand::RngExt as _;

use super::fill::{self, ROWS_OF_FIRST};
use super::{TableWorld, rate};
use crate::Result;
use crate::bench::baseline::table::pages::{self, Question};
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::postgres::{database, within_patience};
use crate::bench::{Context, peak_memory, tables};

/// Values of the first key column: ten million rows.
const FIRSTS: usize = 1_000;
/// Clients, one page in flight each.
const CLIENTS: usize = 4;
/// Rows a page, and how many pages a client asks for.
const PAGES: [(usize, usize); 2] = [(100, 2_500), (5_000, 150)];

/// It has no data between two runs: ten million rows lie on one database at a time.
pub(in crate::bench::scenario) struct TableRange;

impl Measured for TableRange {
    const NAME: &'static str = "table-range";
    const ABOUT: &'static str =
        "pages of 100 and 5,000 rows of ten million, on both databases, against bare loops";

    async fn prepare(_: &Context) -> Result<Self> {
        Ok(TableRange)
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = sqlite(context).await?;
        samples.extend(postgres(context).await?);
        Ok(samples)
    }
}

/// Pages anywhere in the table, for each client.
fn questions(context: &Context, rows: usize, each: usize) -> Vec<Vec<Question>> {
    let mut random = rand::rng();
    let mut question = || Question {
        first: tables::first(random.random_range(0..context.scaled(FIRSTS))),
        from: random.random_range(1..=(ROWS_OF_FIRST - rows) as i64),
        rows,
    };
    (0..CLIENTS).map(|_| (0..each).map(|_| question()).collect()).collect()
}

/// Rows a second of the server.
async fn ours(world: &TableWorld, questions: &[Vec<Question>], rows: usize) -> Result<f64> {
    let body = |Question { first, from, rows }: &Question| tables::range(first, *from, *rows);
    let bodies = questions.iter().map(|own| own.iter().map(body).collect()).collect();
    let each = questions.first().map_or(0, Vec::len);
    Ok(rate(&world.address, &world.credentials, "GetRange", bodies, each).await? * rows as f64)
}

fn sample(database: &str, rows: usize, ours: f64, name: &str, bare: f64) -> Sample {
    Sample::new(format!("{database}, rows a page: {rows}"), ours, "rows/s")
        .against(name, bare)
        .target(Target::RatioAtLeast(0.5))
}

async fn sqlite(context: &Context) -> Result<Vec<Sample>> {
    let world = TableWorld::new(context, None).await?;
    let firsts = context.scaled(FIRSTS);
    let data = world.data.path().to_owned();
    let table = tokio::task::spawn_blocking(move || fill::sqlite(&data, firsts)).await??;
    let server = world.start().await?;
    let mut samples = Vec::new();
    for (rows, each) in PAGES {
        let questions = questions(context, rows, context.scaled(each));
        let (database, asked) = (world.data.path().join("tidemark.db"), questions.concat());
        let bare = tokio::task::spawn_blocking(move || pages::on_sqlite(&database, table, &asked)).await??;
        let ours = ours(&world, &questions, rows).await?;
        samples.push(sample("SQLite", rows, ours, "the statement in process", bare));
    }
    samples.push(peak_memory("SQLite, peak server memory", &server)?);
    server.stop().await?;
    Ok(samples)
}

async fn postgres(context: &Context) -> Result<Vec<Sample>> {
    let database = database().await?;
    let url = database.new_database().await;
    let world = TableWorld::new(context, Some(&url)).await?;
    let table = within_patience(fill::postgres(&url, context.scaled(FIRSTS))).await?;
    let server = world.start().await?;
    let mut samples = Vec::new();
    for (rows, each) in PAGES {
        let questions = questions(context, rows, context.scaled(each));
        let asked = questions.concat();
        let mut bare = (1, 0.0);
        for connections in [1, 2] {
            let rate = within_patience(pages::on_postgres(&url, table, &asked, connections)).await?;
            if rate > bare.1 {
                bare = (connections, rate);
            }
        }
        let ours = ours(&world, &questions, rows).await?;
        samples.push(sample("PostgreSQL", rows, ours, &format!("bare loop, connections {}", bare.0), bare.1));
    }
    samples.push(peak_memory("PostgreSQL, peak server memory", &server)?);
    server.stop().await?;
    Ok(samples)
}
