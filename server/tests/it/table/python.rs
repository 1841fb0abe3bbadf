//! The SDK for Python: each script of `scripts/` is a test.

use std::path::Path;

use tokio::process::Command;

use crate::table::packages::{PYTHON, scripts};
use crate::table::world::{World, output};

/// Runs a script, which fails where something is not as it should be.
async fn run(script: &str, world: World) {
    run_with(script, &world, &[]).await;
}

/// The same with more in its environment.
async fn run_with(script: &str, world: &World, more: &[(&str, String)]) {
    let mut python = python(&scripts().join(script), world).await;
    python.envs(more.iter().map(|(name, value)| (name, value)));
    output(python).await;
}

/// A script with the SDK, and the world in its environment.
pub(crate) async fn python(script: &Path, world: &World) -> Command {
    let packages = tokio::task::spawn_blocking(|| PYTHON.clone()).await.expect("installed");
    let mut python = Command::new("python3");
    python.arg(script).env("PYTHONPATH", packages).env("PYTHONDONTWRITEBYTECODE", "1");
    python.envs(world.environment());
    python
}

/// A program writes into the inbox of somebody, as somebody else.
async fn run_in_the_inbox(mut world: World) {
    let (sender, _) = world.sign_up("program").await;
    let (receiver, token) = world.sign_up("reader").await;
    world.key = world.make_key(&["--instance", "testing", "--inbox", &sender.to_string()]).await;
    let more = [
        ("chat", world.server.address().to_owned()),
        ("sender", sender.to_string()),
        ("receiver", receiver.to_string()),
        ("token", token),
    ];
    run_with("inbox.py", &world, &more).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_writes_into_inboxes() {
    run_in_the_inbox(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_writes_into_inboxes_on_postgres() {
    run_in_the_inbox(World::start_on_postgres().await).await;
}

macro_rules! scripts {
    ($($test:ident: $script:literal),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::run($script, super::World::start().await).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::run($script, super::World::start_on_postgres().await).await;
            })+
        }

        #[test]
        fn every_script_is_run() {
            let files = std::fs::read_dir(scripts()).expect("a folder").map(|file| file.expect("readable").file_name());
            let mut found: Vec<_> = files.filter_map(|name| name.into_string().ok()).collect();
            found.retain(|name| name.ends_with(".py") && !["tell.py", "world.py"].contains(&name.as_str()));
            found.sort();
            let mut listed = vec!["inbox.py", $($script),+];
            listed.sort_unstable();
            assert_eq!(found, listed);
        }
    };
}

scripts! {
    tables_and_rows_are_made_read_changed_and_deleted: "quickstart.py",
    keys_that_the_server_assigns_grow_and_are_told: "auto_increment.py",
    each_row_of_a_batch_has_a_result_of_its_own: "batches.py",
    twelve_thousand_rows_are_read_page_by_page: "paging.py",
    every_filter_lets_through_what_it_says: "filters.py",
    every_condition_is_held: "conditions.py",
    versions_are_kept_and_expire: "versions.py",
    whoever_signs_wrongly_is_refused: "signatures.py",
    a_client_notices_answers_that_were_changed: "tampered.py",
    what_is_wrong_or_too_large_is_refused_in_the_words_of_the_service: "limits.py",
}
