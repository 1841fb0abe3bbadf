//! Lists what `store::migrations` compiles in: the files of `migrations/` whose names begin with a number, and those of
//! PostgreSQL's stored functions.
//!
//! sqlx's own macro would do, but with it sqlx and its drivers, SQLite's C among them, are compiled a second time for
//! the compiler's side.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
    // Cargo runs this in the crate's folder.
    let migrations = Path::new("../migrations");
    let to = env::var_os("OUT_DIR").expect("cargo names the folder for output");
    for database in ["sqlite", "postgres"] {
        let listed = listed(&migrations.join(database));
        fs::write(Path::new(&to).join(format!("{database}.rs")), listed).expect("the list is written");
    }
    for functions in ["functions", "distributed"] {
        let listed = listed_functions(&migrations.join("postgres").join(functions));
        fs::write(Path::new(&to).join(format!("{functions}.rs")), listed).expect("the list is written");
    }
}

/// An array of the number, the description and the text of each migration in `folder`, in the order of the numbers.
fn listed(folder: &Path) -> String {
    let mut found: Vec<(i64, String, String)> = files(folder)
        .into_iter()
        .filter_map(|(name, path)| {
            let (number, description) = name.split_once('_')?;
            Some((number.parse().ok()?, description.replace('_', " "), path))
        })
        .collect();
    found.sort();
    let mut list = String::from("&[\n");
    for (number, description, path) in found {
        writeln!(list, "    ({number}, {description:?}, include_str!({path:?})),").expect("a string grows");
    }
    list + "]\n"
}

/// An array of the name and the text of each function in `folder`. A file has the name of its function.
fn listed_functions(folder: &Path) -> String {
    let mut list = String::from("&[\n");
    for (name, path) in files(folder) {
        writeln!(list, "    ({name:?}, include_str!({path:?})),").expect("a string grows");
    }
    list + "]\n"
}

/// The names, without the ending, and the paths of the SQL files in `folder`.
fn files(folder: &Path) -> Vec<(String, String)> {
    let folder = folder.canonicalize().unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut found: Vec<(String, String)> = fs::read_dir(&folder)
        .unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        .filter_map(|file| {
            let path = file.expect("the folder is readable").path();
            let name = path.file_name()?.to_str()?.strip_suffix(".sql")?.to_owned();
            Some((name, path.to_str()?.to_owned()))
        })
        .collect();
    found.sort();
    found
}
