//! The service worker and the web manifest, which make the chat installable and let it open without the server.
//!
//! Stateless. The server's handlers send them under addresses that never change, not to be kept by the browser.

use std::sync::LazyLock;

use serde_json::json;

use crate::assets;

/// Files that are not kept: of pages beside the chat, or fetched when somebody wants them. All others are, also the few of the card.
const ELSEWHERE: [&str; 5] = ["docs.css", "tables.css", "emoji-en.js", "emoji-list.js", "emoji-zh.js"];

static WORKER: LazyLock<String> = LazyLock::new(|| {
    let files: Vec<String> =
        assets::names().filter(|name| !ELSEWHERE.contains(name)).map(assets::asset_url).collect();
    let (hash, files) = (json!(assets::hash()), json!(files));
    let modules = assets::of_the_worker();
    format!("const HASH = {hash};\nconst FILES = {files};\n{modules}{}", include_str!("../service_worker.js"))
});

static MANIFEST: LazyLock<String> = LazyLock::new(|| {
    json!({
        "name": "Tidemark",
        "id": "/",
        "start_url": "/",
        "scope": "/",
        "display": "standalone",
        "background_color": "#ffffff",
        "theme_color": "#0d6a74",
        "icons": [{ "src": assets::asset_url("icon.svg"), "type": "image/svg+xml", "sizes": "any" }],
    })
    .to_string()
});

/// The service worker of this version of the static files (JavaScript).
pub fn service_worker() -> &'static str {
    &WORKER
}

/// The web manifest (JSON).
pub fn manifest() -> &'static str {
    &MANIFEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worker_names_files_that_exist_and_its_version() {
        let (head, _) = service_worker().split_once("];").expect("the list");
        let files: Vec<&str> = head.split('"').filter(|part| part.starts_with("/static/")).collect();
        assert!(files.len() > 10);
        for file in &files {
            let found = crate::asset(file.strip_prefix("/static/").expect("the prefix"));
            assert!(found.is_some_and(|found| found.immutable), "{file}");
        }
        for needed in ["chat.js", "app.css", "icons.svg", "texts-en.js", "texts-zh.js"] {
            assert!(files.contains(&assets::asset_url(needed).as_str()), "{needed}");
        }
        assert!(head.starts_with(&format!("const HASH = \"{}\";", assets::hash())));
    }

    #[test]
    fn the_manifest_has_an_icon_that_exists() {
        let manifest: serde_json::Value = serde_json::from_str(manifest()).expect("JSON");
        let icon = manifest["icons"][0]["src"].as_str().expect("an address");
        assert!(crate::asset(icon.strip_prefix("/static/").expect("the prefix")).is_some());
    }
}
