//! The checker on small invented sources: what it must find, and what it must leave out.

use std::collections::BTreeSet;

use super::circles::circles;
use super::source::{Files, Source};

const MODULES: &str = "mod app; mod http; mod store; pub use store::Row;";

/// Reads the crate `chat` with this text in `app`.
fn chat(app: &str) -> Source {
    let files = [("lib.rs", MODULES), ("app.rs", app), ("http/mod.rs", ""), ("store.rs", "pub struct Row;")];
    read(&files)
}

fn read(files: &[(&str, &str)]) -> Source {
    let files: Files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    Source::read("chat", &["lib.rs"], &files)
}

/// The modules that `app` uses with this text.
fn used(app: &str) -> Vec<String> {
    let source = chat(app);
    source
        .edges()
        .into_keys()
        .inspect(|(from, _)| assert_eq!(*from, "app"))
        .map(|(_, to)| to.to_owned())
        .collect()
}

#[test]
fn every_kind_of_path_is_found() {
    for text in [
        "use crate::http;",
        "use crate::{store::Row as _, http::{self, Server}};",
        "fn f() { use super::http::Server; }",
        "fn f() { let x = crate::http::start(); }",
        "mod inner { fn f() -> Option<super::super::http::Server> { None } }",
        "fn f() { println!(\"{}\", crate::http::PORT); }",
        "macro_rules! m { () => { use $crate::{http::Server, store}; } }",
        "#[derive(crate::http::Shape)] struct S;",
        "struct S { #[serde(default = \"crate::http::port\")] port: u16 }",
        "#[cfg(any(test, feature = \"fixture\"))] use crate::http;",
        "#[cfg(test)] mod tests {} use crate::http;",
        "pub(crate) use chat::http::Server;",
    ] {
        assert!(used(text).contains(&"http".to_owned()), "{text}");
    }
    assert_eq!(used("use crate::Row;"), ["store"], "by a name of the root");
}

#[test]
fn what_does_not_ship_or_is_its_own_is_left_out() {
    for text in [
        "// use crate::http;",
        "/// See [`crate::http`].\nfn f() -> &'static str { \"a text about crate::http things\" }",
        "#[cfg(test)] use crate::http;",
        "#[cfg(all(test, unix))] mod tests { use crate::http; }",
        "impl S { #[cfg(test)] fn f() { crate::http::start(); } }",
        "fn f() { #[cfg(test)] let x = crate::http::start(); }",
        "mod inner { pub(in crate::app) struct S; pub(in super::super::app) struct T; }",
        "use other::http;",
        "use self::inner::S; mod inner { use super::f; }",
    ] {
        assert_eq!(used(text), [""; 0], "{text}");
    }
}

#[test]
fn files_are_reached_by_mod_alone() {
    let files = [
        ("lib.rs", "mod app; #[cfg(test)] mod tests;"),
        ("app.rs", "mod deep; #[cfg(test)] mod tests;"),
        ("app/deep/mod.rs", "use crate::tests;"),
        ("app/tests.rs", "mod more;"),
        ("app/tests/more.rs", "use crate::tests;"),
        ("tests.rs", "use crate::app;"),
        ("forgotten.rs", ""),
    ];
    let source = read(&files);
    let files: Files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    assert_eq!(source.modules, BTreeSet::from(["app".to_owned()]));
    assert_eq!(source.unreached(&files), ["forgotten.rs"]);
    let read: Vec<&str> = source.references.iter().map(|reference| &*reference.file).collect();
    assert_eq!(read, ["app/deep/mod.rs"]);
}

#[test]
fn circles_of_any_length_are_found() {
    let found = circles([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a"), ("x", "y"), ("y", "x")]);
    assert_eq!(found, BTreeSet::from([vec!["a", "b", "c"], vec!["x", "y"]]));
    assert_eq!(circles([("a", "b"), ("a", "c"), ("b", "c")]), BTreeSet::new());

    let files =
        [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "fn f() { super::a::f(); }")];
    assert_eq!(circles(read(&files).edges().into_keys()), BTreeSet::from([vec!["a", "b"]]));
}
