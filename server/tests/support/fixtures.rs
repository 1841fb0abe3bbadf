//! Installations that earlier versions wrote, `../api/fixtures`, as files again.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api/fixtures")
}

/// Makes the files of an installation from a folder of fixtures.
pub(crate) fn lay_out(folder: &Path, data: &Path) {
    fs::create_dir_all(data).expect("made");
    for entry in fs::read_dir(folder).expect("readable") {
        let path = entry.expect("readable").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if let Some(name) = name.strip_suffix(".sql") {
            let database = rusqlite::Connection::open(data.join(format!("{name}.db"))).expect("made");
            database.execute_batch(&fs::read_to_string(&path).expect("readable")).expect("filled");
        } else if name == "invites.key" {
            fs::copy(&path, data.join(name)).expect("copied");
        }
    }
}
