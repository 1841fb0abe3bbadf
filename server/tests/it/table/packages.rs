//! The official SDKs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

#[path = "../../support/packages.rs"]
pub(crate) mod registries;

use registries::{from_npm, installed, run};

/// `server/tests/it/table/scripts`.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/table/scripts")
}

/// The folder that Python imports from.
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
    from_npm("tablestore-node-5.6.5", &wanted)
});
