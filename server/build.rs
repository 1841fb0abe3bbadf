//! Lists the migrations for `store::migrations`: the files of `migrations/` whose names begin with a number.
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
}

/// An array of the number, the description and the text of each migration in `folder`, in the order of the numbers.
fn listed(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut found: Vec<(i64, String, String)> = fs::read_dir(&folder)
        .unwrap_or_else(|why| panic!("{}: {why}", folder.display()))
        .filter_map(|file| {
            let path = file.expect("the folder is readable").path();
            let name = path.file_name()?.to_str()?;
            let (number, description) = name.strip_suffix(".sql")?.split_once('_')?;
            let text = path.to_str()?.to_owned();
            Some((number.parse().ok()?, description.replace('_', " "), text))
        })
        .collect();
    found.sort();
    let mut list = String::from("&[\n");
    for (number, description, path) in found {
        writeln!(list, "    ({number}, {description:?}, include_str!({path:?})),").expect("a string grows");
    }
    list + "]\n"
}
