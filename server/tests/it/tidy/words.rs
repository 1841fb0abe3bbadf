//! How comments read, and how many things one name stands for.

use std::collections::BTreeMap;
use std::path::Path;

use super::{files, read, root};

/// A sentence that begins so asks a question; in plain English all others begin with their subject.
const ASKING: [&str; 8] =
    ["Who ", "What ", "Whom ", "Whose ", "Whoever ", "Whatever ", "Whichever ", "Those who "];

/// One sentence in so many may begin so and ask nothing.
const ONE_IN: usize = 100;

/// Types beyond which a name says too little.
const MOST_TYPES: usize = 3;

/// So many names may have more types.
const NAMES: usize = 5;

/// Names that each part of a program has, by convention.
const CONVENTIONAL: [&str; 3] = ["Options", "Error", "Handle"];

/// The sentences of the comments that fill whole lines.
fn sentences(text: &str) -> Vec<String> {
    let comments = text.lines().map(|line| {
        let comment = line.trim_start().strip_prefix("//")?;
        Some(comment.trim_start_matches(['/', '!']).trim())
    });
    let mut blocks = vec![String::new()];
    for line in comments {
        let block = blocks.last_mut().expect("never empty");
        match line {
            Some("") | None if block.is_empty() => {}
            Some("") | None => blocks.push(String::new()),
            Some(line) => *block = format!("{block} {line}"),
        }
    }
    blocks.iter().flat_map(|block| split(block)).collect()
}

fn split(block: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in block.split_whitespace() {
        let last = found.last_mut().expect("never empty");
        let is_new = last.ends_with(['.', ':', ';', '!', '?']) && word.starts_with(char::is_uppercase);
        match is_new {
            true => found.push(word.to_owned()),
            false if last.is_empty() => word.clone_into(last),
            false => *last = format!("{last} {word}"),
        }
    }
    found.retain(|sentence| sentence.contains(' '));
    found
}

fn asks_nothing(sentence: &str) -> bool {
    ASKING.iter().any(|word| sentence.starts_with(word)) && !sentence.ends_with('?')
}

#[test]
fn sentences_of_comments_begin_with_their_subject() {
    let (mut all, mut wrong) = (0, Vec::new());
    for path in files(&root(), &[".rs", ".js"]) {
        for sentence in sentences(&read(&path)) {
            all += 1;
            if asks_nothing(&sentence) {
                wrong.push(format!("{}: {sentence}", path.display()));
            }
        }
    }
    assert!(all > 10_000, "{all} sentences");
    assert!(wrong.len() * ONE_IN <= all, "{} of {all}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn sentences_are_told_apart() {
    let text = "//! What it is.\n//! Who asks? What it says:\n//! nothing.\n\nfn f() {}\n    // Those who wait\n    // go on. e.g. this\n";
    let found = sentences(text);
    assert_eq!(
        found,
        ["What it is.", "Who asks?", "What it says: nothing.", "Those who wait go on. e.g. this"]
    );
    assert_eq!(
        found.iter().map(|sentence| asks_nothing(sentence)).collect::<Vec<_>>(),
        [true, false, true, true]
    );
}

/// The types that `text` defines outside its tests.
fn types(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split_once("#[cfg(test)]\nmod ").map_or(text, |(code, _)| code);
    code.lines().filter_map(|line| {
        let mut words = line.split_whitespace().filter(|word| !word.starts_with("pub"));
        let kind = words.next()?;
        let name = words.next()?.split(|c: char| !c.is_alphanumeric()).next()?;
        let is_associated = kind == "type" && line.starts_with(' ');
        let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind) && !is_associated;
        (is_type && name.starts_with(char::is_uppercase)).then_some(name)
    })
}

/// Whether a file holds nothing but tests, or what tests need.
fn is_of_tests(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs")
}

#[test]
fn few_names_stand_for_many_types() {
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for path in files(&root(), &[".rs"]).iter().filter(|path| !is_of_tests(path)) {
        for name in types(&read(path)) {
            *places.entry(name.to_owned()).or_default() += 1;
        }
    }
    places.retain(|name, count| *count > MOST_TYPES && !CONVENTIONAL.contains(&name.as_str()));
    assert!(places.len() <= NAMES, "{} names: {places:?}", places.len());
}
