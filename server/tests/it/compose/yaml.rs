//! As much of YAML as the compose files use: maps and lists by indentation, lists in brackets, plain and quoted text,
//! comments, anchors of maps and `<<` that takes one over. Everything else is refused.

use std::collections::HashMap;

/// A value in a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

impl Value {
    /// The value of this key, in a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Keys and values; none but in a map.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Value)> {
        let entries = if let Value::Map(entries) = self { entries.as_slice() } else { &[] };
        entries.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The items of a list; none for other values.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Value> {
        let items = if let Value::List(items) = self { items.as_slice() } else { &[] };
        items.iter()
    }

    /// The text that this is.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        let Value::Text(text) = self else { panic!("not text: {self:?}") };
        text
    }
}

/// A line that says something, and how far it is indented.
struct Line<'a> {
    indent: usize,
    text: &'a str,
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    at: usize,
    anchors: HashMap<&'a str, Value>,
}

/// Reads a whole file.
#[track_caller]
pub(crate) fn read(text: &str) -> Value {
    assert!(!text.contains('\t'), "YAML is indented with spaces");
    let lines =
        text.lines().map(|line| Line { indent: line.len() - line.trim_start().len(), text: line.trim() });
    let lines = lines.filter(|line| !line.text.is_empty() && !line.text.starts_with('#')).collect();
    let mut reader = Reader { lines, at: 0, anchors: HashMap::new() };
    let value = reader.block(0);
    assert_eq!(reader.at, reader.lines.len(), "read to its end");
    value
}

impl<'a> Reader<'a> {
    fn next_at(&mut self, indent: usize) -> Option<&'a str> {
        let line = self.lines.get(self.at).filter(|line| line.indent == indent)?;
        self.at += 1;
        Some(line.text)
    }

    /// A list or a map, all of whose lines are indented so far.
    fn block(&mut self, indent: usize) -> Value {
        if self.lines.get(self.at).is_some_and(|line| line.text.starts_with("- ")) {
            let mut items = Vec::new();
            while let Some(text) = self.next_at(indent) {
                let item = text.strip_prefix("- ").unwrap_or_else(|| panic!("no item of a list: {text}"));
                items.push(match item.split_once(": ") {
                    Some((key, value)) if !item.starts_with('"') => {
                        Value::Map(vec![(key.to_owned(), scalar(value))])
                    }
                    _ => scalar(item),
                });
            }
            return Value::List(items);
        }
        let mut entries: Vec<(String, Value)> = Vec::new();
        while let Some(text) = self.next_at(indent) {
            let (key, rest) = text.split_once(':').unwrap_or_else(|| panic!("no key: {text}"));
            let rest = rest.trim();
            let value = match rest.strip_prefix('&') {
                Some(anchor) => {
                    let value = self.below(indent);
                    self.anchors.insert(anchor, value.clone());
                    value
                }
                None if rest.is_empty() => self.below(indent),
                None if key == "<<" => {
                    let anchor = rest.strip_prefix('*').expect("the name of an anchor");
                    let Value::Map(taken) = &self.anchors[anchor] else { panic!("{anchor} is no map") };
                    entries.extend(taken.iter().cloned());
                    continue;
                }
                None => scalar(rest),
            };
            assert!(entries.iter().all(|(known, _)| known != key), "{key} stands there twice");
            entries.push((key.to_owned(), value));
        }
        Value::Map(entries)
    }

    /// The block that is indented further; an empty text if there is none.
    fn below(&mut self, indent: usize) -> Value {
        match self.lines.get(self.at) {
            Some(line) if line.indent > indent => self.block(line.indent),
            _ => Value::Text(String::new()),
        }
    }
}

fn scalar(text: &str) -> Value {
    if let Some(inner) = text.strip_prefix('[') {
        let inner = inner.strip_suffix(']').unwrap_or_else(|| panic!("no end of the list: {text}"));
        return Value::List(inner.split(',').map(|item| scalar(item.trim())).collect());
    }
    if let Some(inner) = text.strip_prefix('"') {
        let inner = inner.strip_suffix('"').unwrap_or_else(|| panic!("no end of the text: {text}"));
        return Value::Text(inner.to_owned());
    }
    let special = text.starts_with(['{', '*', '&', '!', '|', '>', '\'', '%', '@', '`']);
    assert!(!special && !text.contains(" #") && !text.contains(": "), "not read here: {text}");
    Value::Text(text.to_owned())
}

#[test]
fn maps_lists_and_anchors_are_read() {
    let text = "x-a: &a\n  one: [1, \"b: c\"]\n\nb:\n  <<: *a\n  list:\n    - x\n    - key: value\n";
    let value = read(text);
    let taken = value.get("b").expect("b");
    assert_eq!(
        taken.get("one").expect("taken over").items().map(Value::text).collect::<Vec<_>>(),
        ["1", "b: c"]
    );
    let items: Vec<&Value> = taken.get("list").expect("a list").items().collect();
    assert_eq!((items[0].text(), items[1].get("key").expect("a map").text()), ("x", "value"));
}

#[test]
#[should_panic(expected = "stands there twice")]
fn a_key_that_stands_there_twice_is_refused() {
    read("a: 1\na: 2\n");
}
