//! [`commit!`]: which commit a program is built from.
//!
//! A macro, and no build script: a new commit compiles only the file that says `commit!()` anew. A build script's
//! answer would compile the library beside that file, too. Only the `main.rs` of a program says it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use proc_macro::TokenStream;

/// The short hash of the commit and its date, `("0bd88b1f", "2026-11-26")`.
///
/// `TIDEMARK_COMMIT` and `TIDEMARK_COMMIT_DATE` say it when both are set, as where the source is built without its repository. Both
/// are empty where nobody knows.
#[proc_macro]
pub fn commit(_: TokenStream) -> TokenStream {
    let (commit, date) = given().or_else(from_git).unwrap_or_default();
    // The compiler looks at these files again before the next build.
    let watched = match git(&["rev-parse", "--git-path", "logs/HEAD"]).map(|path| folder().join(path)) {
        Some(log) if log.is_file() => format!("const _: &[u8] = include_bytes!({log:?});"),
        _ => String::new(),
    };
    let text = format!(
        "{{ {watched} const _: [Option<&str>; 2] = [option_env!(\"TIDEMARK_COMMIT\"), \
         option_env!(\"TIDEMARK_COMMIT_DATE\")]; ({commit:?}, {date:?}) }}"
    );
    text.parse().expect("this is an expression")
}

#[expect(clippy::disallowed_methods, reason = "read by the compiler, not by the program")]
fn given() -> Option<(String, String)> {
    let said = |name| env::var(name).ok().filter(|value| !value.is_empty());
    Some((said("TIDEMARK_COMMIT")?, said("TIDEMARK_COMMIT_DATE")?))
}

/// The answer of the repository, if the crate that is compiled is a part of it: an archive may have been unpacked inside another one.
fn from_git() -> Option<(String, String)> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    let said = git(&["-c", "core.abbrev=8", "log", "-1", "--format=%h %cs"])?;
    let (commit, date) = said.split_once(' ')?;
    Some((commit.to_owned(), date.to_owned()))
}

fn git(words: &[&str]) -> Option<String> {
    let said = Command::new("git").current_dir(folder()).args(words).output().ok()?;
    let text = String::from_utf8(said.stdout).ok()?;
    said.status.success().then(|| text.trim().to_owned())
}

/// Of the crate that is compiled.
fn folder() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}
