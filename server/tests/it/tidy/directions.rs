//! Holds the directions in which modules and crates may use each other, as the tables of docs/ARCHITECTURE.md say, and
//! that no modules of a crate use each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;
use std::thread;

use super::circles::circles;
use super::source::{Files, Source};
use super::{files, read, root};

/// Crates, and modules of them, that only some folders of the server may use, beside the program around them. The first
/// that fits counts.
const FOREIGN: &[(&str, &[&str])] = &[
    ("axum", &["http"]),
    ("tower_http", &["http"]),
    ("utoipa", &["http"]),
    ("object_store", &["files"]),
    ("image", &["files"]),
    ("ring", &["push"]),
    // Hints between servers are notifications of PostgreSQL, and nothing that is stored.
    ("sqlx", &["store", "notify"]),
    ("rusqlite", &["store"]),
    // Nothing of the sequences: they keep a second process out, and hear what PostgreSQL says beside its answers.
    ("seqsvr_core::file_lock", &["store"]),
    ("seqsvr_core::postgres_warnings", &["store"]),
    // SQLite believes its disk; what lies below it sees all databases of the process.
    ("seqsvr_core::page_sums", &["store"]),
    ("seqsvr_core", &["seq", "transfer"]),
    ("seqsvr_client", &["seq"]),
    ("seqsvr_issuer", &["seq"]),
    ("seqsvr_rpc", &["http"]),
];

/// The folders of all crates of the workspace.
fn crates() -> Vec<String> {
    let manifest = manifest(&root().join("Cargo.toml"));
    let members = manifest["workspace"]["members"].as_array().expect("members");
    let mut found = Vec::new();
    for member in members.iter().filter_map(toml::Value::as_str) {
        match member.strip_suffix("/*") {
            None => found.push(member.to_owned()),
            Some(folder) => {
                let entries = std::fs::read_dir(root().join(folder)).expect("a folder of crates");
                let names = entries.map(|entry| entry.expect("readable").file_name());
                found.extend(names.map(|name| format!("{folder}/{}", name.to_string_lossy())));
            }
        }
    }
    found.sort();
    found
}

fn manifest(path: &Path) -> toml::Table {
    toml::from_str(&read(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All crates by their folder. They are parsed once, and beside each other.
static SOURCES: LazyLock<BTreeMap<String, Source>> = LazyLock::new(|| {
    thread::scope(|scope| {
        let parsed = |folder: String| (folder.clone(), scope.spawn(move || parsed(&folder)));
        let parsed: Vec<_> = crates().into_iter().map(parsed).collect();
        parsed.into_iter().map(|(folder, source)| (folder, source.join().expect("parsed"))).collect()
    })
});

/// A crate of the workspace as it ships: its library and its programs.
fn parsed(folder: &str) -> Source {
    let manifest = manifest(&root().join(folder).join("Cargo.toml"));
    let named = manifest.get("lib").and_then(|lib| lib.get("name")).and_then(toml::Value::as_str);
    let name = named.or_else(|| manifest["package"]["name"].as_str()).expect("a name").replace('-', "_");
    let src = root().join(folder).join("src");
    let below = |path: &Path| path.strip_prefix(&src).expect("below src").to_string_lossy().into_owned();
    let found: Files = files(&src, &[".rs"]).iter().map(|path| (below(path), read(path))).collect();
    let is_root = |file: &str| file == "lib.rs" || file == "main.rs" || file.starts_with("bin/");
    let roots: Vec<&str> = found.keys().map(String::as_str).filter(|file| is_root(file)).collect();
    let source = Source::read(&name, &roots, &found);
    let unreached = source.unreached(&found);
    assert!(unreached.is_empty(), "{folder}/src: no `mod` leads to {unreached:?}");
    source
}

/// The rows of the tables of docs/ARCHITECTURE.md: what stands in the first cell between backticks, and the last cell.
fn rows() -> Vec<(String, String)> {
    let text = read(&root().join("docs/ARCHITECTURE.md"));
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.strip_suffix(" |")?.split(" | ").collect();
        Some((cells.first()?.trim_end_matches('`').to_owned(), (*cells.last()?).to_owned()))
    });
    rows.collect()
}

fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':' || c == '-'))
        .filter(|word| !word.is_empty())
}

/// Each top-level module of the server with what its row says.
fn layers() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (folder, may) in rows() {
        let Some(names) = folder.strip_prefix("server/src/") else { continue };
        for name in names.trim_end_matches(".rs").trim_matches(['{', '}']).split(',') {
            found.insert(name.to_owned(), may.clone());
        }
    }
    found
}

#[test]
fn modules_of_the_server_depend_as_the_table_of_folders_says() {
    let server = &SOURCES["server"];
    let layers = layers();
    let rows: BTreeSet<&String> = layers.keys().collect();
    let modules: BTreeSet<&String> = server.modules.iter().collect();
    assert_eq!(
        modules, rows,
        "modules of server/src, and rows of the table of folders in docs/ARCHITECTURE.md"
    );
    let edges = server.edges();
    assert!(edges.len() > 40, "the test no longer finds the imports: {}", edges.len());
    let wrong = edges.into_iter().filter(|((from, to), _)| {
        let may = &layers[*from];
        may != "everything" && !words(may).any(|word| word == *to)
    });
    let wrong: BTreeSet<String> =
        wrong.map(|((from, to), file)| format!("server/src/{file}: {from} must not reach {to}")).collect();
    assert!(wrong.is_empty(), "against the table of folders in docs/ARCHITECTURE.md: {wrong:#?}");
}

#[test]
fn foreign_crates_stay_in_their_layer() {
    let server = &SOURCES["server"];
    let layers = layers();
    let mut seen = BTreeSet::new();
    let mut wrong = BTreeSet::new();
    for reference in server.references.iter().filter(|reference| !reference.from.is_empty()) {
        let path = reference.path.join("::");
        let within = |part: &str| {
            path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        let Some((part, homes)) = FOREIGN.iter().find(|(part, _)| within(part)) else {
            continue;
        };
        seen.insert(*part);
        if !homes.contains(&&*reference.from) && layers[&reference.from] != "everything" {
            wrong.insert(format!("server/src/{}: {} must not use {path}", reference.file, reference.from));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen.len(), FOREIGN.len(), "only {seen:?} are used; the rest can leave the list");
}

#[test]
fn crates_of_seqsvr_depend_as_their_table_says() {
    let folders: Vec<String> =
        crates().iter().filter_map(|folder| folder.strip_prefix("seqsvr/").map(str::to_owned)).collect();
    let package = |folder: &str| {
        let manifest = manifest(&root().join("seqsvr").join(folder).join("Cargo.toml"));
        manifest["package"]["name"].as_str().expect("a name").to_owned()
    };
    let packages: BTreeMap<String, &String> =
        folders.iter().map(|folder| (package(folder), folder)).collect();
    let rows: Vec<(String, String)> =
        rows().into_iter().filter(|(folder, _)| folders.contains(folder)).collect();
    for folder in &folders {
        let at = rows.iter().position(|(row, _)| row == folder);
        let at = at.unwrap_or_else(|| panic!("docs/ARCHITECTURE.md has no row for seqsvr/{folder}"));
        let (always, with_features) = rows[at].1.split_once("with").unwrap_or((&rows[at].1, ""));
        let manifest = manifest(&root().join("seqsvr").join(folder).join("Cargo.toml"));
        for (name, how) in manifest["dependencies"].as_table().expect("dependencies") {
            let Some(used) = packages.get(name) else { continue };
            let optional = how.get("optional").and_then(toml::Value::as_bool) == Some(true);
            let may =
                words(always).chain(words(with_features).filter(|_| optional)).any(|word| word == *used);
            assert!(may, "seqsvr/{folder} must not use {name}; it may use: {}", rows[at].1);
            let above = rows[..at].iter().any(|(row, _)| row == *used);
            assert!(above, "docs/ARCHITECTURE.md: {used} must stand above {folder}, which uses it");
        }
    }
}

#[test]
fn no_modules_of_a_crate_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (folder, source) in &*SOURCES {
        let edges = source.edges();
        for circle in circles(edges.keys().copied()) {
            let within = |(from, to): &(&str, &str)| circle.contains(from) && circle.contains(to);
            let steps = edges.iter().filter(|(edge, _)| within(edge));
            let steps = steps.map(|((from, to), file)| format!("{from} uses {to} ({file})"));
            found.push(format!("{folder}: {}", steps.collect::<Vec<_>>().join(", ")));
        }
    }
    assert!(found.is_empty(), "modules use each other in a circle:\n{}", found.join("\n"));
}

/// A parent and its children may know each other; brothers and sisters use each other one way.
#[test]
fn no_files_of_a_folder_use_each_other_in_a_circle() {
    let mut found = Vec::new();
    for (folder, source) in &*SOURCES {
        for (of, edges) in source.inner_edges() {
            for circle in circles(edges.keys().map(|(from, to)| (&**from, &**to))) {
                let within = |name: &String| circle.contains(&&**name);
                let steps = edges.iter().filter(|((from, to), _)| within(from) && within(to));
                let steps = steps.map(|((from, to), file)| format!("{from} uses {to} ({file})"));
                found.push(format!("{folder}, {of}: {}", steps.collect::<Vec<_>>().join(", ")));
            }
        }
    }
    assert!(found.is_empty(), "files use each other in a circle:\n{}", found.join("\n"));
}
