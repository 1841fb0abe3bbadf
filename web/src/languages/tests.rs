//! The rules for translators and programmers, checked in the catalogues and everything that takes texts from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// The categories that Intl.PluralRules knows.
const CATEGORIES: [&str; 6] = ["zero", "one", "two", "few", "many", "other"];

/// The catalogue of each language, without the texts that it has from English.
fn catalogues() -> Vec<(String, Catalogue)> {
    let read = |&(tag, text): &(&str, &str)| {
        let file = format!("web/languages/{tag}.json");
        let catalogue = serde_json::from_str(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        (file, catalogue)
    };
    SOURCES.iter().map(read).collect()
}

fn forms(text: &CatalogueText) -> Vec<&str> {
    match text {
        CatalogueText::One(text) => vec![text],
        CatalogueText::ByCount(forms) => forms.values().map(String::as_str).collect(),
    }
}

fn placeholders(text: &str) -> BTreeSet<&str> {
    text.split('{')
        .skip(1)
        .map(|part| part.split_once('}').unwrap_or_else(|| panic!("open: {text}")).0)
        .collect()
}

/// Every faulty key, with its file.
fn faults(catalogues: &[(String, Catalogue)]) -> Vec<String> {
    let (english_file, english) = &catalogues[0];
    let mut faults = Vec::new();
    for (file, catalogue) in catalogues {
        for (key, original) in english {
            let Some(text) = catalogue.get(key) else {
                faults.push(format!("{file}: {key} is missing; translate it"));
                continue;
            };
            let all = |text: &CatalogueText| -> BTreeSet<String> {
                forms(text).into_iter().flat_map(placeholders).map(str::to_owned).collect()
            };
            if all(text) != all(original) {
                faults.push(format!(
                    "{file}: {key} has the placeholders {:?}, and {english_file} {:?}",
                    all(text),
                    all(original)
                ));
            }
            match (text, original) {
                (CatalogueText::ByCount(forms), CatalogueText::ByCount(_)) => {
                    let unknown = forms.keys().find(|category| !CATEGORIES.contains(&category.as_str()));
                    if let Some(unknown) = unknown {
                        faults.push(format!("{file}: {key} has {unknown}, which is none of {CATEGORIES:?}"));
                    }
                    // The one that every count may fall back to names all values.
                    match forms.get("other") {
                        None => faults.push(format!("{file}: {key} has no text for `other`")),
                        Some(other) => {
                            if all(text) != placeholders(other).into_iter().map(str::to_owned).collect() {
                                faults.push(format!("{file}: {key} lacks a placeholder in `other`"));
                            }
                        }
                    }
                }
                (CatalogueText::One(_), CatalogueText::One(_)) => {}
                _ => faults.push(format!("{file}: {key} is by count in one language alone")),
            }
            if forms(text).iter().any(|form| form.trim().is_empty()) {
                faults.push(format!("{file}: {key} is empty"));
            }
        }
        let unknown = catalogue.keys().filter(|key| !english.contains_key(*key));
        faults.extend(unknown.map(|key| format!("{file}: {key} is not in {english_file}")));
    }
    faults
}

#[test]
fn every_language_has_every_text_with_the_same_placeholders() {
    assert_eq!(faults(&catalogues()), Vec::<String>::new());
}

#[test]
fn what_a_translator_may_get_wrong_is_named_with_its_file() {
    let catalogue = |text: &str| serde_json::from_str::<Catalogue>(text).expect("JSON");
    let english = catalogue(
        r#"{"a": "x", "b": "{name}", "c": {"one": "1 day", "other": "{count} days"}, "d": {"other": "{count}"}, "e": "x"}"#,
    );
    let other = catalogue(
        r#"{"b": "{nom}", "c": {"one": "{count} jour", "several": "x"}, "d": "{count}", "e": " ", "f": "x"}"#,
    );
    let found = faults(&[("en.json".to_owned(), english), ("fr.json".to_owned(), other)]);
    let reported = [
        "a is missing",
        "b has the placeholders {\"nom\"}, and en.json {\"name\"}",
        "c has several",
        "c has no text for `other`",
        "d is by count in one language alone",
        "e is empty",
        "f is not in en.json",
    ];
    assert_eq!(found.len(), reported.len(), "{found:#?}");
    for (found, reported) in found.iter().zip(reported) {
        assert!(found.starts_with("fr.json: ") && found.contains(reported), "{found}");
    }
}

#[test]
fn a_key_stands_once_and_in_order() {
    for (tag, text) in SOURCES {
        let keys: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("  \"")?.split('"').next()).collect();
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1], "web/languages/{tag}.json: {} belongs before {}", pair[1], pair[0]);
        }
    }
}

#[test]
fn every_file_in_the_folder_is_a_language_of_the_page() {
    let mut tags: Vec<_> =
        files("languages").iter().map(|path| path.file_stem().expect("a name").to_owned()).collect();
    tags.sort();
    let mut known: Vec<_> = SOURCES.iter().map(|(tag, _)| *tag).collect();
    known.sort_unstable();
    assert_eq!(tags, known, "name the language in web/src/languages.rs");
}

#[test]
fn a_text_that_a_language_lacks_is_english() {
    let read = |text| serde_json::from_str::<Catalogue>(text).expect("a catalogue");
    let whole = over(&read(r#"{"yes": "Yes", "no": "No"}"#), read(r#"{"yes": "是"}"#));
    assert_eq!(whole, read(r#"{"yes": "是", "no": "No"}"#));
    assert_ne!(Language(1).text("language.name"), Language::ENGLISH.text("language.name"));
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&format!("{folder}/{}", path.file_name().expect("a name").display()))),
            false => found.push(path),
        }
    }
    found
}

/// The keys in a script or template: whole keys, and beginnings of keys whose end is a value.
#[derive(Default)]
struct Taken {
    /// With the file that takes it.
    keys: BTreeMap<String, String>,
    beginnings: BTreeMap<String, String>,
}

impl Taken {
    fn read(&mut self, file: &str, text: &str) {
        // `t("key"`, `t(`beginning.${…}``, in Rust `text("key"`, and in templates `"key"|t`.
        let text = &text.replace("language.text(\"", "t(\"");
        for (at, _) in text.match_indices("t(") {
            if text[..at].ends_with(|before: char| before.is_alphanumeric() || "_.$".contains(before)) {
                continue;
            }
            let rest = &text[at + 2..];
            if let Some(rest) = rest.strip_prefix('"') {
                self.keys.insert(until(rest, '"'), file.to_owned());
            } else if let Some(rest) = rest.strip_prefix('`') {
                let (beginning, _) =
                    rest.split_once("${").unwrap_or_else(|| panic!("{file}: no value in t(`{rest:.40}"));
                self.beginnings.insert(beginning.to_owned(), file.to_owned());
            }
        }
        for (at, _) in text.match_indices("\"|t") {
            if text[at + 3..].starts_with(|after: char| after.is_alphanumeric() || after == '_') {
                continue;
            }
            let begin = text[..at].rfind('"').unwrap_or_else(|| panic!("{file}: a filter without a text"));
            self.keys.insert(text[begin + 1..at].to_owned(), file.to_owned());
        }
    }
}

fn until(text: &str, end: char) -> String {
    text.split(end).next().unwrap_or_default().to_owned()
}

/// Texts that the server takes by a key that it computes; its own tests know which there are.
const BY_THE_SERVER: [&str; 2] = ["language.", "error."];

#[test]
fn every_key_that_is_taken_exists_and_every_key_is_taken() {
    let mut taken = Taken::default();
    for path in ["static", "templates", "src"].into_iter().flat_map(files) {
        if path.extension().is_some_and(|it| it != "svg" && it != "css") && !path.ends_with("tests.rs") {
            taken.read(&path.display().to_string(), &fs::read_to_string(&path).expect("UTF-8"));
        }
    }
    assert!(taken.keys.len() > 10, "the search finds what is there");
    let english = &CATALOGUES[0];
    for (key, file) in &taken.keys {
        assert!(english.contains_key(key), "{file} takes {key}, which web/languages/en.json lacks");
        let in_template = file.ends_with(".html");
        let by_count = matches!(english[key], CatalogueText::ByCount(_));
        assert!(!(in_template && by_count), "{file} takes {key}, which is by count: only scripts can");
    }
    for (beginning, file) in &taken.beginnings {
        let begun = english.keys().any(|key| key.starts_with(beginning));
        assert!(begun, "{file} takes {beginning}…, of which web/languages/en.json has none");
    }
    for key in english.keys() {
        let by_beginning = taken.beginnings.keys().map(String::as_str).chain(BY_THE_SERVER);
        let is_taken =
            taken.keys.contains_key(key) || by_beginning.into_iter().any(|begun| key.starts_with(begun));
        assert!(is_taken, "web/languages/en.json: nothing takes {key}; remove it");
    }
}

#[test]
fn the_search_for_keys_tells_calls_from_words_that_end_alike() {
    let mut taken = Taken::default();
    taken.read("a.js", r#"t("one"); x.t("no"); insert("no"); [t("two", { n })]; t(`three.${state}`)"#);
    taken.read("a.html", r#"{{ "four"|t }} {{ "five"|t|with("n", n) }} {{ "no"|trim }}"#);
    assert_eq!(taken.keys.keys().collect::<Vec<_>>(), ["five", "four", "one", "two"]);
    assert_eq!(taken.beginnings.keys().collect::<Vec<_>>(), ["three."]);
}

#[test]
fn values_take_the_places_of_their_names_and_are_not_read_again() {
    let message =
        Message::new("{from} invites you to {group}.").with("from", &"{group}").with("group", &"Sailing");
    assert_eq!(message.to_string(), "{group} invites you to Sailing.");
    assert_eq!(Message::new("{count} left").to_string(), "{count} left");
}

#[test]
fn scripts_get_the_texts_that_they_take_in_their_language_alone() {
    let made = scripts(&[r#"h("p", {}, t("cancel"), t("codes.left", { count }))"#, "t(`state.${state}`)"]);
    for (language, (name, content)) in Language::all().zip(made) {
        assert_eq!(name, format!("texts-{}.js", language.tag()));
        let content = String::from_utf8(content).expect("UTF-8");
        let json =
            content.strip_prefix("globalThis.tidemarkTexts = ").and_then(|rest| rest.strip_suffix(";\n"));
        let texts: Catalogue = serde_json::from_str(json.expect("one assignment")).expect("JSON");
        let keys: Vec<_> = texts.keys().map(String::as_str).collect();
        assert_eq!(keys[..2], ["cancel", "codes.left"]);
        assert!(keys.len() > 4 && keys[2..].iter().all(|key| key.starts_with("state.")), "{keys:?}");
        assert_eq!(texts["cancel"], CatalogueText::One(language.text("cancel").to_owned()));
    }
}

/// Words that stand in templates in any language.
const NAMES: [&str; 7] = ["Tidemark", "Enter", "Shift", "Ctrl", "Alt", "Esc", "Tab"];

/// The words of a template that are no text of a catalogue: between tags, and in attributes that people read or hear.
fn own_words(template: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '<']) {
        plain.push_str(&rest[..at]);
        let (end, is_tag) = match &rest[at..at + 2] {
            "{{" => ("}}", false),
            "{%" => ("%}", false),
            "{#" => ("#}", false),
            _ => (">", true),
        };
        let length = rest[at..].find(end).map_or(rest.len() - at, |found| found + end.len());
        let part = &rest[at..at + length];
        for name in ["aria-label=\"", "title=\"", "placeholder=\"", "alt=\""].into_iter().filter(|_| is_tag) {
            if let Some((_, value)) = part.split_once(&format!(" {name}"))
                && !value.starts_with("{{")
            {
                plain.push_str(&format!(" {} ", until(value, '"')));
            }
        }
        plain.push(' ');
        rest = &rest[at + length..];
    }
    plain.push_str(rest);
    let words = plain.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 1);
    words.filter(|word| !NAMES.contains(word)).map(str::to_owned).collect()
}

#[test]
fn templates_of_the_chat_have_no_words_of_their_own() {
    assert_eq!(own_words("<p title=\"Two\">{{ \"one\"|t }} <b>three</b></p>"), ["Two", "three"]);
    assert_eq!(own_words("<p title=\"{{ name }}\">"), Vec::<String>::new());
    for path in files("templates") {
        let name = path.file_name().expect("a name").display().to_string();
        // The pages that describe the interface, and those of tables and operators, are English.
        let is_english = ["docs.html", "guide.html"].contains(&name.as_str())
            || path.parent().is_some_and(|folder| folder.ends_with("tables") || folder.ends_with("admin"));
        if !is_english {
            let template = fs::read_to_string(&path).expect("UTF-8");
            assert_eq!(own_words(&template), Vec::<String>::new(), "web/templates/{name}");
        }
    }
}

#[test]
fn scripts_have_no_sentences_of_their_own() {
    for path in files("static").into_iter().filter(|path| path.extension().is_some_and(|it| it == "js")) {
        let name = path.file_name().expect("a name").display().to_string();
        let script = fs::read_to_string(&path).expect("UTF-8");
        // Names of emoji come from elsewhere, in each language.
        let lines = script.lines().filter(|_| !name.starts_with("emoji-"));
        for line in lines.map(str::trim).filter(|line| !line.starts_with(['/', '*'])) {
            for literal in line.split(['"', '`']).skip(1).step_by(2) {
                let is_sentence = literal.starts_with(char::is_uppercase) && literal.contains(' ');
                assert!(!is_sentence, "web/static/{name} says “{literal}” in one language");
            }
        }
    }
}
