//! The static files, embedded, and the scripts made of the catalogues, under addresses that change with their content.
//!
//! One hash over all files is a path segment (`/static/{hash}/chat.js`), so that a script's relative
//! imports keep the hash and a page never mixes two versions. Scripts are put together (`bundles`), and each file is
//! compressed, once, when the first page or file is asked for. The server's static route calls [`asset`].

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::bundles::{Modules, OF_OTHERS};
use crate::languages;

/// Bytes of the hash that stand in an address: enough to tell versions apart.
const HASH_BYTES: usize = 8;

/// A static file as the server sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asset {
    /// The file's content.
    pub bytes: &'static [u8],
    /// The same in gzip's format (RFC 1952), for those who take it.
    pub gzip: &'static [u8],
    /// Value of the `content-type` header.
    pub content_type: &'static str,
    /// Whether the address names exactly this content, so that it may be cached for ever.
    pub immutable: bool,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_bytes!(concat!("../static/", $name)).as_slice())),+]
    };
}

static EMBEDDED: &[(&str, &[u8])] = files![
    "about.js",
    "account.js",
    "actions.js",
    "address.js",
    "addresses.js",
    "api.js",
    "app.css",
    "ask.js",
    "attached.js",
    "badge.js",
    "banner.js",
    "beside.css",
    "beside.js",
    "blobs.js",
    "characters.js",
    "chat.js",
    "codes.js",
    "completions.js",
    "composer.js",
    "contacts.js",
    "crop.js",
    "database.js",
    "date.js",
    "db.js",
    "deletion.js",
    "device.js",
    "dialogs.js",
    "docs.css",
    "dom.js",
    "drafts.js",
    "earlier.js",
    "emoji-en.js",
    "emoji-list.js",
    "emoji-zh.js",
    "emoji.js",
    "expiry.js",
    "files.css",
    "files.js",
    "find.js",
    "folding.js",
    "forward.js",
    "fragments.js",
    "groups.js",
    "header.js",
    "history.js",
    "hits.js",
    "icon.svg",
    "icons.svg",
    "invite.js",
    "keep.js",
    "keys.js",
    "lean-qr.js",
    "leave.js",
    "line.js",
    "list.js",
    "list_menu.js",
    "listed.js",
    "lists.js",
    "log.js",
    "markdown.js",
    "members.js",
    "mentions.js",
    "menu.js",
    "moments.js",
    "mouse.js",
    "mute.js",
    "notify.js",
    "own_name.js",
    "pages.js",
    "pane.js",
    "picker.js",
    "picking.js",
    "pins.js",
    "player.js",
    "portrait.js",
    "presence.js",
    "profile.js",
    "push.js",
    "qr.js",
    "reader.js",
    "readers.js",
    "recorder.js",
    "refusals.js",
    "reminder.js",
    "report.js",
    "reveal.js",
    "route.js",
    "roving.js",
    "rows.js",
    "search.js",
    "search_here.js",
    "search_panel.js",
    "sending.js",
    "session.js",
    "settings.js",
    "sign_in.js",
    "sign_up_invites.js",
    "socket.js",
    "sought.js",
    "spans.js",
    "starred.js",
    "state.js",
    "store.js",
    "subscription.js",
    "sync.js",
    "tables.css",
    "tabs.js",
    "texts.js",
    "theme.js",
    "thumbnails.js",
    "told.js",
    "touch.js",
    "tray.js",
    "tus.js",
    "unread.js",
    "uploads.js",
    "viewer.js",
    "voice.js",
    "window.js",
    "worker.js",
    "zoom.js",
];

/// A file, by its name.
struct File {
    name: Cow<'static, str>,
    bytes: Cow<'static, [u8]>,
    gzip: Vec<u8>,
}

static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let sources: Vec<&str> = sources().map(|(_, source)| source).collect();
    let owned = |(name, text): (&str, String)| (name.to_owned(), text.into_bytes());
    let scripts: Vec<_> = of_modules(|modules| modules.scripts().into_iter().map(owned).collect());
    let made = scripts.into_iter().chain(languages::scripts(&sources));
    let made = made.map(|(name, bytes)| (Cow::Owned(name), Cow::Owned(bytes)));
    let others = EMBEDDED.iter().filter(|(name, _)| !name.ends_with(".js"));
    let others = others.map(|(name, bytes)| (Cow::Borrowed(*name), Cow::Borrowed(*bytes)));
    let file = |(name, bytes): (Cow<'static, str>, Cow<'static, [u8]>)| {
        let gzip = gzip(&bytes);
        File { name, bytes, gzip }
    };
    others.chain(made).map(file).collect()
});

/// The modules: name and text.
fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    let scripts = EMBEDDED.iter().filter(|(name, _)| name.ends_with(".js"));
    scripts.map(|(name, bytes)| (*name, std::str::from_utf8(bytes).expect("a script; a test reads all")))
}

/// What `make` makes of the modules.
fn of_modules<T>(make: impl FnOnce(&Modules<'_>) -> T) -> T {
    let bare: Vec<(&str, String)> =
        sources().map(|(name, source)| (name, without_comments(source))).collect();
    make(&Modules(bare.iter().map(|(name, text)| (*name, text.as_str())).collect()))
}

/// The modules of the service worker, as the beginning of its script.
pub(crate) fn of_the_worker() -> String {
    of_modules(|modules| modules.of_the_worker())
}

/// A script without its lines of comments, which are a sixth of what browsers would fetch. Comments behind code stay, and all of files of
/// other projects.
fn without_comments(script: &str) -> String {
    if script.contains(OF_OTHERS) {
        return script.to_owned();
    }
    let mut is_inside = false;
    let is_code = |line: &&str| {
        let text = line.trim();
        let is_comment = is_inside || text.starts_with("//") || text.starts_with("/**");
        is_inside = (is_inside || text.starts_with("/**")) && !text.ends_with("*/");
        !is_comment
    };
    script.split_inclusive('\n').filter(is_code).collect()
}

/// The bytes in gzip's format (RFC 1952), as short as they get.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.expect("writing into a Vec cannot fail")
}

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = Sha256::new();
    for File { name, bytes, .. } in &*FILES {
        hasher.update((name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().iter().take(HASH_BYTES).fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing into a String cannot fail");
        hex
    })
});

/// The file at `path`, the part of an address after `/static/`: `{hash}/{name}`. Under another hash (a page
/// that was loaded just before an upgrade) it is today's file, not to be cached. `None`: no such file.
pub fn asset(path: &str) -> Option<Asset> {
    let (hash, name) = path.split_once('/')?;
    let File { name, bytes, gzip } = FILES.iter().find(|file| file.name == name)?;
    Some(Asset { bytes, gzip, content_type: content_type(name), immutable: hash == *HASH })
}

/// The part that all addresses share: another one for other content.
pub(crate) fn hash() -> &'static str {
    &HASH
}

/// The names of all files.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| &*file.name)
}

/// The address under which `name` may be cached for ever.
pub fn asset_url(name: &str) -> String {
    format!("/static/{}/{name}", *HASH)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;
    use std::collections::BTreeSet;

    /// The most that all scripts and styles together may weigh in any one language, compressed: 165 KiB, for the pages of the chat, those
    /// of tables and of the description, the texts and the emoji. No page needs all of it.
    const BUDGET_BYTES: usize = 165 * 1024;

    /// The most that the service worker may weigh, compressed: it has the parts of the chat that read and store rows once more.
    const WORKER_BYTES: usize = 24 * 1024;

    #[test]
    fn a_file_is_found_under_its_own_hash_and_may_be_cached() {
        let path = asset_url("app.css");
        let found = asset(path.strip_prefix("/static/").expect("the prefix")).expect("the file");
        assert_eq!(found.content_type, "text/css; charset=utf-8");
        assert!(found.immutable && !found.bytes.is_empty());
    }

    #[test]
    fn another_hash_gives_the_file_of_today_uncached() {
        let found = asset("0123456789abcdef/chat.js").expect("the file");
        assert_eq!(found.content_type, "text/javascript; charset=utf-8");
        assert!(!found.immutable);
    }

    #[test]
    fn what_is_not_listed_is_not_found() {
        for path in ["", "chat.js", "x/", "x/nothing.js", "x/../src/lib.rs", "x/y/chat.js"] {
            assert_eq!(asset(path), None, "{path}");
        }
    }

    #[test]
    fn every_file_in_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/static");
        let on_disk: BTreeSet<String> = std::fs::read_dir(folder)
            .expect("the folder")
            .map(|file| file.expect("an entry").file_name().into_string().expect("a plain name"))
            .collect();
        let embedded: BTreeSet<String> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(on_disk, embedded);
    }

    #[test]
    fn every_import_names_an_embedded_file() {
        for (name, bytes) in EMBEDDED.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).expect("UTF-8");
            for line in text.lines().filter(|line| line.starts_with("import ") || line.starts_with("} from "))
            {
                let Some((_, target)) = line.split_once(" from \"") else { continue };
                let target = target.trim_end_matches("\";");
                let target = target.strip_prefix("./").unwrap_or_else(|| panic!("{name}: foreign: {line}"));
                assert!(EMBEDDED.iter().any(|(known, _)| *known == target), "{name} imports {target}");
            }
        }
    }

    #[test]
    fn a_page_has_one_script_and_what_is_fetched_later_comes_by_itself() {
        let scripts: Vec<&str> = names().filter(|name| name.ends_with(".js")).collect();
        for needed in ["chat.js", "sign_in.js", "theme.js", "moments.js", "emoji-list.js", "lean-qr.js"] {
            assert!(scripts.contains(&needed), "{needed} in {scripts:?}");
        }
        assert!(!scripts.contains(&"store.js") && scripts.len() < EMBEDDED.len() / 3, "{scripts:?}");
    }

    #[test]
    fn scripts_lose_their_lines_of_comments_and_nothing_else() {
        let script = "// Says it.\nlet a = 1; // one\n\n/** Of\n * two lines. */\nlet b = `\n  /${a}`;\n";
        assert_eq!(without_comments(script), "let a = 1; // one\n\nlet b = `\n  /${a}`;\n");
        assert!(without_comments(include_str!("../static/lean-qr.js")).starts_with("// lean-qr"));
    }

    #[test]
    fn what_is_compressed_is_the_file() {
        for File { name, bytes, .. } in &*FILES {
            let found = asset(&format!("x/{name}")).expect("a file");
            let mut inflated = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(found.gzip), &mut inflated).expect("gzip");
            assert!(inflated == **bytes && *bytes == found.bytes, "{name}");
        }
    }

    #[test]
    fn scripts_and_styles_stay_within_the_budget() {
        let worker = gzip(crate::service_worker().as_bytes()).len();
        assert!(worker <= WORKER_BYTES, "{worker} bytes of the service worker");
        for language in Language::all() {
            let is_foreign = |file: &&File| {
                let mut others = Language::all().filter(|other| *other != language);
                file.name.ends_with(".svg")
                    || others.any(|other| file.name.ends_with(&format!("-{}.js", other.tag())))
            };
            let files = FILES.iter().filter(|file| !is_foreign(file));
            let total = files.map(|file| file.gzip.len()).sum::<usize>();
            assert!(total <= BUDGET_BYTES, "{total} bytes in {}", language.name());
        }
    }
}
