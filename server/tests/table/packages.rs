//! The official SDKs, from their registries by their own clients: once for each version, into a folder under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// `server/tests/table/scripts`.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/table/scripts")
}

/// What Python imports from.
pub(crate) static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
    let version =
        run(Command::new("python3").args(["-c", "import sys; print(sys.implementation.cache_tag)"]));
    let requirements = scripts().join("requirements.txt");
    installed(&format!("tablestore-{}-6.4.8", version.trim()), |folder| {
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--root-user-action=ignore",
        ]);
        run(pip.arg("--target").arg(folder).arg("--requirement").arg(&requirements));
    })
});

/// The folder in which Node.js finds `node_modules`.
pub(crate) static NODE: LazyLock<PathBuf> = LazyLock::new(|| {
    let wanted = ["tablestore@5.6.5", "mocha@3.5.3", "protobufjs@6.11.6", "flatbuffers@1.12.0"];
    installed("tablestore-node-5.6.5", |folder| {
        std::fs::write(folder.join("package.json"), "{\"private\": true}").expect("written");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]);
        run(npm.args(wanted).current_dir(folder));
    })
});

/// The folder of this name, which `install` fills where it is missing. It is there whole or not at all.
fn installed(name: &str, install: impl Fn(&Path)) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = place.join(name);
    if !folder.is_dir() {
        let fresh = tempfile::tempdir_in(place).expect("a folder");
        install(fresh.path());
        // Another process may have been faster.
        if std::fs::rename(fresh.path(), &folder).is_ok() {
            // It has another name now: there is nothing to remove.
            let _ = fresh.keep();
        }
    }
    folder
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{printed}\n{errors}", done.status);
    printed.into_owned()
}
