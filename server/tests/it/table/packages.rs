//! The official SDKs.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

#[path = "../../support/packages.rs"]
pub(crate) mod registries;

use registries::{from_npm, from_pip};

/// `server/tests/it/table/scripts`.
pub(crate) fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/table/scripts")
}

/// The folder that Python imports from.
pub(crate) static PYTHON: LazyLock<PathBuf> =
    LazyLock::new(|| from_pip("tablestore", "6.4.8", &scripts().join("requirements.txt")));

/// The folder in which Node.js finds `node_modules`.
pub(crate) static NODE: LazyLock<PathBuf> = LazyLock::new(|| {
    let wanted = ["tablestore@5.6.5", "mocha@3.5.3", "protobufjs@6.11.6", "flatbuffers@1.12.0"];
    from_npm("tablestore-node-5.6.5", &wanted)
});
