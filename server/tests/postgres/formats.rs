//! What earlier versions wrote into PostgreSQL, opened by this one. `../api/fixtures/README.md` says how a fixture is made.

use std::fs;
use std::path::{Path, PathBuf};

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tidemark_test_support::servers::postgres::durable_database;

use crate::answers::Answers;
use crate::support::TestApp;

fn folders() -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/postgres/fixtures");
    let mut folders: Vec<PathBuf> =
        fs::read_dir(fixtures).expect("readable").map(|entry| entry.expect("readable").path()).collect();
    folders.sort();
    assert!(!folders.is_empty());
    folders
}

#[tokio::test]
async fn a_database_of_each_earlier_version_goes_on_unharmed() {
    for folder in folders() {
        println!("{}", folder.display());
        let url = durable_database().await;
        let mut connection = PgConnection::connect(&url).await.expect("connected");
        let dump = fs::read_to_string(folder.join("database.sql")).expect("readable");
        connection.execute(AssertSqlSafe(dump)).await.expect("filled");
        connection.close().await.expect("closed");
        let answers = Answers::of(&folder);
        for start in 0..2 {
            let mut app = TestApp::start_with(|config| {
                config.storage.database_url = url.clone().into();
                config.limits.searches_per_account_per_minute = 0;
            })
            .await;
            let all = answers.check(&app).await;
            answers.names_are_known(&app).await;
            if start == 0 {
                // Whoever made a group owns it.
                let mut connection = PgConnection::connect(&url).await.expect("connected");
                let owned = "SELECT count(*) FROM members WHERE active AND standing = 2";
                let owned: i64 = sqlx::query_scalar(owned).fetch_one(&mut connection).await.expect("asked");
                connection.close().await.expect("closed");
                assert!(owned > 0, "{}", folder.display());
            }
            answers.go_on(&app, &all, start).await;
            answers.let_in(&app, &all, start).await;
            app.stop().await;
        }
    }
}
