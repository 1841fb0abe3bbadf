//! A server fetches nothing from elsewhere, so that no link in a message makes it call anybody: the code that serves has no HTTP
//! client but the one for push services, which looks at each address. It calls its storage and the services of its cluster,
//! over sqlx, tonic and rusqlite, and the bucket that `[files]` names, if there is one. The commands of `tidemark table` are a
//! client of another server, and `tidemark status` asks the one that it is started beside; nothing that serves uses them.

use std::process::Command;

use super::{files, read, root};

/// Crates with which programs fetch what an address names.
const CLIENTS: [&str; 9] =
    ["attohttpc", "awc", "curl", "isahc", "minreq", "octocrab", "reqwest", "surf", "ureq"];

/// Where clients of HTTP are in the crates that are there for serving, and for tonic, which calls the sequence service.
const PARTS: [&str; 4] =
    ["hyper::client", "hyper_util::client", "tokio_tungstenite::connect", "client_async"];

#[test]
fn what_serves_has_no_client_of_http() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--frozen", "--package", "tidemark-server", "--edges", "normal", "--prefix", "none"]);
    let done = tree.args(["--format", "{lib}"]).current_dir(root()).output().expect("cargo runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let crates = String::from_utf8_lossy(&done.stdout);
    assert!(crates.lines().any(|name| name == "axum"), "the tree of something else:\n{crates}");
    for client in CLIENTS {
        assert!(!crates.lines().any(|name| name == client), "tidemark-server depends on {client}");
    }
    let (all, commands) = (root().join("server/src"), root().join("server/src/cli"));
    let mut users: Vec<_> = files(&all, &[".rs"])
        .into_iter()
        .filter(|path| PARTS.iter().any(|part| read(path).contains(part)))
        .collect();
    users.sort();
    // Two commands have one, which shows that it is found; the third one knows the address of the configuration alone.
    let (of_storage, push) = (all.join("files/s3.rs"), all.join("push/service.rs"));
    assert_eq!(users, [commands.join("status.rs"), commands.join("table/client.rs"), of_storage, push]);
}
