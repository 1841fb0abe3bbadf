//! The programs and commands of docs/TABLES.md, as they stand there.

use std::path::Path;

use tokio::process::Command;

use crate::table::packages::{NODE, PYTHON};
use crate::table::world::{Key, PROGRAM, World, output};

/// The blocks of the page in this language.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/TABLES.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let opening = format!("```{language}\n");
    let blocks = page.split(opening.as_str()).skip(1);
    blocks.map(|rest| rest.split("```").next().expect("an end").to_owned()).collect()
}

/// The variables of the page, under this prefix.
fn variables(world: &World, key: &Key, prefix: &str) -> [(String, String); 4] {
    [
        (format!("{prefix}_ENDPOINT"), format!("http://{}", world.tables)),
        (format!("{prefix}_INSTANCE"), key.instance.clone()),
        (format!("{prefix}_ACCESS_KEY_ID"), key.id.clone()),
        (format!("{prefix}_ACCESS_KEY_SECRET"), key.secret.clone()),
    ]
}

fn python(block: &str) -> Command {
    let mut python = Command::new("python3");
    python.args(["-c", block]).env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_does_what_it_says() {
    let world = World::start().await;
    let packages = tokio::task::spawn_blocking(|| (PYTHON.clone(), NODE.clone())).await.expect("installed");
    let here = variables(&world, &world.key, "TIDEMARK_TABLE");
    let scripts = blocks("python");
    let [begin, moving] = &scripts[..] else { panic!("{} scripts", scripts.len()) };

    let mut first = python(begin);
    first.env("PYTHONPATH", &packages.0).envs(here.clone());
    let printed = output(first).await;
    assert!(printed.contains("('id', 1)") && printed.contains("12.5"), "{printed}");

    let mut node = Command::new("node");
    node.args(["--no-deprecation", "-e", &blocks("js")[0]]).current_dir(&packages.1).envs(here.clone());
    let printed = output(node).await;
    assert!(printed.contains("total") && printed.contains('3'), "{printed}");

    let program = Path::new(PROGRAM).parent().expect("a folder");
    let script = format!("PATH=\"{}:$PATH\"\n{}", program.display(), blocks("sh")[0]);
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &script]).envs(here);
    let printed = output(shell).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "orders");
    assert!(printed.contains("id (integer, assigned by the server)"), "{printed}");
    let totals: Vec<&str> = lines.iter().copied().filter(|line| line.contains("\"total\"")).collect();
    assert_eq!(totals.len(), 3, "{printed}");

    let other = world.make_key(&["--instance", "moved"]).await;
    let mut copy = python(moving);
    copy.env("PYTHONPATH", &packages.0).env("TABLE", "orders");
    copy.envs(variables(&world, &world.key, "SOURCE")).envs(variables(&world, &other, "TARGET"));
    output(copy).await;
    let mut range = Command::new(PROGRAM);
    range.args(["table", "range", "orders"]).envs(variables(&world, &other, "TIDEMARK_TABLE"));
    let moved: Vec<String> = output(range).await.lines().map(str::to_owned).collect();
    assert_eq!(moved, totals);
}
