//! Packages from their registries, by their own clients: once for each version, into a folder under `target/`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in which Node.js finds `node_modules` with these packages.
pub(crate) fn from_npm(name: &str, wanted: &[&str]) -> PathBuf {
    installed(name, |folder| {
        std::fs::write(folder.join("package.json"), "{\"private\": true}").expect("written");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]);
        run(npm.args(wanted).current_dir(folder));
    })
}

/// The folder from which Python imports the packages of a file of requirements. `name` has their version.
pub(crate) fn from_pip(name: &str, version: &str, requirements: &Path) -> PathBuf {
    let python = run(Command::new("python3").args(["-c", "import sys; print(sys.implementation.cache_tag)"]));
    installed(&format!("{name}-{}-{version}", python.trim()), |folder| {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip.args(["--root-user-action=ignore", "--target"]).arg(folder);
        run(pip.arg("--requirement").arg(requirements));
    })
}

/// The folder of this name, which `install` fills where it is missing. It is there whole or not at all.
pub(crate) fn installed(name: &str, install: impl Fn(&Path)) -> PathBuf {
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

/// Runs a program that must succeed, and returns what it printed.
pub(crate) fn run(command: &mut Command) -> String {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (printed, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}: {}\n{printed}\n{errors}", done.status);
    printed.into_owned()
}
