//! An installation with files moves from SQLite and a directory to PostgreSQL and a bucket, by an import that is killed; and from there on,
//! with the bucket as it is.

use std::path::Path;
use std::process::Stdio;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tidemark_client::{Draft, Http, RangeQuery, Recipient};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::{PATIENCE, until};
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;
use uuid::Uuid;

use super::s3::{objects, serve, service};

const PASSWORD: &str = "a long enough password";

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemark"))
}

fn tidemark(args: &[&str], data: &Path, settings: &[(&str, String)]) -> Command {
    let mut command = Command::new(binary());
    command.args(args).arg("--data-dir").arg(data).envs(settings.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

async fn done(mut command: Command) -> String {
    let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Noise with sides that need previews.
fn picture() -> Vec<u8> {
    let noise =
        |x: u32, y: u32| image::Rgb([((x * 7) ^ (y * 13)) as u8, (x * y) as u8, (x ^ (y * 31)) as u8]);
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_fn(600, 500, noise).write_to(&mut bytes, image::ImageFormat::Png).expect("a PNG");
    bytes.into_inner()
}

/// All that Bob can read: each file of each row, and its previews.
async fn all_files(http: &Http) -> Vec<(Uuid, Vec<u8>)> {
    let bob = http.log_in("bob", PASSWORD).await.expect("logged in");
    let bobs = http.with_token(&bob.token);
    let mut all = Vec::new();
    for row in bobs.range(&RangeQuery::after(0)).await.expect("rows").rows {
        for file in row.files() {
            all.push((file.id, bobs.file(row.message_id, file.id).await.expect("read")));
            for preview in &file.previews {
                all.push((file.id, bobs.preview(row.message_id, file.id, preview).await.expect("read")));
            }
        }
    }
    all
}

/// Ends what a killed command has left running in the database.
async fn end_others(beside: &mut PgConnection) {
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(end).execute(beside).await.expect("ended");
}

/// Inserts into `table` wait until the trigger goes.
async fn slow_down(beside: &mut PgConnection, table: &str) {
    let slow = format!(
        "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'; \
         CREATE TRIGGER slow BEFORE INSERT ON {table} FOR EACH STATEMENT EXECUTE FUNCTION slow()"
    );
    sqlx::raw_sql(AssertSqlSafe(slow)).execute(beside).await.expect("made");
}

async fn speed_up(beside: &mut PgConnection, table: &str) {
    end_others(beside).await;
    sqlx::raw_sql(AssertSqlSafe(format!("DROP TRIGGER slow ON {table}")))
        .execute(beside)
        .await
        .expect("dropped");
}

async fn count(beside: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(beside).await.expect("read")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_moves_with_its_files_through_kills() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name);
    let (data, none) = (path("data"), path("none"));
    for directory in [&data, &none] {
        std::fs::create_dir(directory).expect("made");
    }
    let server = Server::start(binary(), &data).await.expect("starts");
    let http = server.http().expect("an address");
    let ann = http.sign_up("ann", PASSWORD).await.expect("signed up");
    let bob = http.sign_up("bob", PASSWORD).await.expect("signed up");
    let anns = http.with_token(&ann.token);
    let large: Vec<u8> = (0..20 << 20).map(|n: u32| (n % 241) as u8).collect();
    let mut sent = Vec::new();
    for (name, bytes) in [("large", &large), ("tide.txt", &b"low tide".to_vec()), ("pier.png", &picture())] {
        let file = anns.upload(name, bytes).await.expect("uploaded");
        sent.push(file);
        let draft = Draft::text(Recipient::User(bob.uid), "").with_files(&[file]);
        anns.send(&draft).await.expect("sent");
    }
    let before = all_files(&http).await;
    assert!(before.len() >= 4 && before[0].1 == large, "three files and a preview");
    server.stop().await.expect("stopped");
    let file = path("move.jsonl");
    let archive = file.to_str().expect("UTF-8");
    done(tidemark(&["export", archive], &data, &[])).await;

    // To PostgreSQL and a bucket. Killed when objects are there that no row knows, and when all are.
    let (serving, address) = serve(service(&path("buckets")), ([127, 0, 0, 1], 0).into()).await;
    let url = durable_database().await;
    let bucket = format!("s3+http://KEY:the/secret+of=it@{address}/files/chat");
    let settings = [("TIDEMARK_DATABASE_URL", url.clone()), ("TIDEMARK_FILES__STORE", bucket.clone())];
    done(tidemark(&["migrate"], &none, &settings)).await;
    let mut beside = PgConnection::connect(&url).await.expect("connected");
    let import = || tidemark(&["import", archive], &none, &settings);
    for (table, stored) in [("files", "SELECT 0::bigint"), ("file_uses", "SELECT count(*) FROM files")] {
        slow_down(&mut beside, table).await;
        let mut killed = import().spawn().expect("runs");
        until("objects are there", async || objects(&path("buckets")) > 0).await;
        if table == "file_uses" {
            until("files are known", async || count(&mut beside, stored).await > 0).await;
        }
        killed.kill().await.expect("killed");
        speed_up(&mut beside, table).await;
    }
    assert_eq!(count(&mut beside, "SELECT count(*) FROM file_uses").await, 0);
    let said = done(import()).await;
    assert!(said.contains("of them by an earlier run; all 3 files are there"), "{said}");

    // Long ago, so that the walk looks whether rows name them.
    sqlx::raw_sql("UPDATE file_uses SET used_at = 0; UPDATE files SET check_at = 0")
        .execute(&mut beside)
        .await
        .expect("aged");
    let server = Server::start_with(&settings, 0, binary(), &none).await.expect("starts");
    let due = "SELECT count(*) FROM files WHERE check_at = 0";
    until("the walk has looked", async || count(&mut beside, due).await == 0).await;
    assert!(all_files(&server.http().expect("an address")).await == before);
    assert_eq!(count(&mut beside, "SELECT count(*) FROM file_uses").await, 3);
    server.stop().await.expect("stopped");

    // Back to SQLite, with the bucket as it is; and with an empty directory, where all are gone.
    let rows = path("rows.jsonl");
    let rows = rows.to_str().expect("UTF-8");
    done(tidemark(&["export", rows, "--without-files"], &none, &settings)).await;
    assert!(std::fs::metadata(rows).expect("there").len() < 100_000, "no bytes of files");
    let store = [("TIDEMARK_FILES__STORE", bucket)];
    let said = done(tidemark(&["import", rows], &path("back"), &store)).await;
    assert!(said.contains("; all 3 files are there"), "{said}");
    let server = Server::start_with(&store, 0, binary(), &path("back")).await.expect("starts");
    assert!(all_files(&server.http().expect("an address")).await == before);
    server.stop().await.expect("stopped");
    let said = done(tidemark(&["import", rows], &path("bare"), &[])).await;
    assert!(said.contains("; 3 of 3 files are not in `[files] store`"), "{said}");
    serving.abort();
}
