//! The page for people: the document, as `web` shows it.

use std::fmt::Write as _;

use serde_json::Value;
use tidemark_web::{self as web, ApiAnswer, ApiCall, ApiRefusal, Field, Tag, Type};

use super::{operations, resolved};
use crate::http::codes::{CODES, Code, code};

/// Where types lie that are referred to.
const TYPES: &str = "#/components/schemas/";

/// The page of `document`.
pub(super) fn render(document: &Value) -> String {
    let tags = document["tags"].as_array().into_iter().flatten();
    let tags: Vec<Tag> = tags
        .map(|tag| {
            let calls = operations(document).filter(|(.., operation)| operation["tags"][0] == tag["name"]);
            let calls =
                calls.map(|(path, method, operation)| call(document, path, method, operation)).collect();
            Tag { name: text(&tag["name"]), about: text(&tag["description"]), calls }
        })
        .collect();
    let types = document["components"]["schemas"].as_object().into_iter().flatten();
    let types: Vec<Type> = types
        .map(|(name, schema)| {
            let mut rows = Vec::new();
            fields(document, schema, Around::default(), false, &mut rows);
            let forms = if schema["oneOf"].is_array() { " It has one of these forms." } else { "" };
            Type { name: name.clone(), about: text(&schema["description"]) + forms, fields: rows }
        })
        .filter(|kind| !kind.fields.is_empty())
        .collect();
    let codes: Vec<ApiRefusal> = CODES.iter().copied().map(refusal).collect();
    let about = text(&document["info"]["description"]);
    web::docs(&web::Docs { about: &about, tags: &tags, codes: &codes, types: &types })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn call(document: &Value, path: &str, method: &str, operation: &Value) -> ApiCall {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters = parameters.map(|parameter| Field {
        place: text(&parameter["in"]),
        required: parameter["required"] == true,
        about: text(&parameter["description"]),
        example: example(parameter).or_else(|| example(&parameter["schema"])).unwrap_or_default(),
        ..field(document, &text(&parameter["name"]), &parameter["schema"])
    });
    let mut body = Vec::new();
    let sent = &operation["requestBody"]["content"]["application/json"]["schema"];
    fields(document, sent, Around::default(), true, &mut body);
    let (mut answers, mut refusals) = (Vec::new(), Vec::new());
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let answer = resolved(document, answer);
        match codes(&answer["content"]["application/problem+json"]["schema"]) {
            Some(codes) => refusals.extend(codes.filter_map(code).map(refusal)),
            None => answers.push(success(document, status, answer)),
        }
    }
    ApiCall {
        id: text(&operation["operationId"]),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: text(&operation["summary"]),
        about: text(&operation["description"]),
        guarded: operation["security"].is_null(),
        parameters: parameters.collect(),
        body,
        answers,
        refusals,
    }
}

fn refusal(Code { status, code, retryable, why }: Code) -> ApiRefusal {
    ApiRefusal { status, code: code.to_owned(), why: why.to_owned(), retryable }
}

fn success(document: &Value, status: &str, answer: &Value) -> ApiAnswer {
    let mut found =
        ApiAnswer { status: status.to_owned(), about: text(&answer["description"]), ..ApiAnswer::default() };
    let Some((kind, content)) = answer["content"].as_object().and_then(|content| content.iter().next())
    else {
        found.kind = "No body.".to_owned();
        return found;
    };
    let body = &content["schema"];
    match (kind.as_str(), body["$ref"].as_str()) {
        ("application/json", Some(_)) => found.refers = refers(document, body),
        ("application/json", None) => {
            let Field { kind, refers, .. } = field(document, "", body);
            (found.kind, found.refers) = (kind, refers);
        }
        _ => found.kind = format!("`{kind}`"),
    }
    found
}

/// The name of the type that `schema`, or that what it lists, refers to, if there is more to say of it.
fn refers(document: &Value, schema: &Value) -> Option<String> {
    let reference =
        [schema, &schema["items"], &schema["allOf"][0]].into_iter().find(|part| part["$ref"].is_string())?;
    let meant = resolved(document, reference);
    let name = reference["$ref"].as_str()?.strip_prefix(TYPES)?;
    (meant["properties"].is_object() || meant["oneOf"].is_array()).then(|| name.to_owned())
}

/// The surroundings of a field.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// The names of the objects around it, with a dot behind each.
    names: &'a str,
    /// Which of several forms it belongs to.
    form: Option<&'a str>,
}

/// The fields of the object `schema`, and of the objects in it, each with the names around it. `whole`: also of those that it refers to.
fn fields(document: &Value, schema: &Value, around: Around<'_>, whole: bool, rows: &mut Vec<Field>) {
    let schema = resolved(document, schema);
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        let meant = resolved(document, choice);
        match refers(document, choice).filter(|_| !whole) {
            Some(name) => rows.push(Field {
                kind: "all fields of".to_owned(),
                refers: Some(name),
                about: text(&meant["description"]),
                ..Field::default()
            }),
            None => {
                let form = Some(meant["description"].as_str().unwrap_or_default());
                fields(document, meant, Around { form, ..around }, whole, rows);
            }
        }
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let mut row = field(document, &format!("{}{name}", around.names), inner);
        // Within one of several forms nothing is required by itself.
        row.required = around.form.is_none() && required.contains(&name.as_str());
        if let Some(form) = around.form {
            row.about = format!("{form} {}", row.about);
        }
        let is_opened = inner["items"].is_null() && (whole || row.refers.is_none());
        if is_opened {
            row.refers = None;
        }
        let names = format!("{}.", row.name);
        rows.push(row);
        if is_opened {
            fields(document, inner, Around { names: &names, form: None }, whole, rows);
        }
    }
}

fn field(document: &Value, name: &str, schema: &Value) -> Field {
    let meant = resolved(document, schema);
    let about = [schema, meant].into_iter().find_map(|schema| schema["description"].as_str());
    let mut about = about.unwrap_or_default().to_owned();
    if let Some(codes) = codes(schema) {
        let codes: Vec<String> = codes.map(|code| format!("`{code}`")).collect();
        let _ = write!(about, "Its `code` is one of {}.", codes.join(", "));
    }
    Field {
        name: name.to_owned(),
        kind: kind(meant),
        refers: refers(document, schema),
        about,
        example: example(meant).unwrap_or_default(),
        ..Field::default()
    }
}

/// The codes that a problem document may have here, where that is said.
fn codes(schema: &Value) -> Option<impl Iterator<Item = &str>> {
    let codes = schema["allOf"][1]["properties"]["code"]["enum"].as_array()?;
    Some(codes.iter().filter_map(Value::as_str))
}

fn example(schema: &Value) -> Option<String> {
    match &schema["example"] {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The type of a value in words, with its limits.
fn kind(schema: &Value) -> String {
    let types = match &schema["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect::<Vec<_>>(),
    };
    let words: Vec<&str> = types
        .into_iter()
        .map(|name| match (name, schema["format"].as_str()) {
            ("string", Some("uuid")) => "UUID",
            ("string", Some("date-time")) => "time (RFC 3339)",
            ("string", _) => "text",
            ("integer", _) => "whole number",
            ("boolean", _) => "`true` or `false`",
            ("array", _) => "list",
            ("null", _) => "`null`",
            (other, _) => other,
        })
        .collect();
    let mut words = words.join(" or ");
    if schema["oneOf"].is_array() {
        words.push_str("object, in one of these forms");
    }
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<String> = choices.iter().map(|choice| format!("`{}`", text(choice))).collect();
        words = choices.join(" or ");
    }
    for (least, most, unit) in [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
    ] {
        match (schema[least].as_u64(), schema[most].as_u64().map(number)) {
            (Some(least), Some(most)) => drop(write!(words, ", {least} to {most}{unit}")),
            (Some(least), None) => drop(write!(words, ", from {least}{unit} up")),
            (None, Some(most)) => drop(write!(words, ", at most {most}{unit}")),
            (None, None) => {}
        }
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let _ = write!(words, ", `{pattern}`");
    }
    if !schema["default"].is_null() {
        let _ = write!(words, ", `{}` by default", schema["default"].to_string().trim_matches('"'));
    }
    match &schema["items"] {
        Value::Null => {}
        items if items["$ref"].is_string() => words.push_str(", each a"),
        items => drop(write!(words, ", each a {}", kind(items))),
    }
    words
}

/// A number as people read it.
fn number(number: u64) -> String {
    match number {
        4_294_967_295 => "2^32 − 1".to_owned(),
        9_007_199_254_740_991 => "2^53 − 1".to_owned(),
        small => small.to_string(),
    }
}
