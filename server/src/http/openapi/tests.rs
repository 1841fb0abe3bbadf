//! The description against itself.

use std::collections::BTreeSet;

use tidemark_process::Version;

use super::*;
use crate::domain::{Kind, Setting};

fn document() -> Value {
    describe(&LimitsSection::default())
}

#[test]
fn the_document_says_the_version_of_the_server() {
    assert_eq!(document()["info"]["version"], Version::default().number());
}

#[test]
fn every_operation_has_a_name_a_summary_and_a_known_tag() {
    let document = document();
    let tags: Vec<&Value> =
        document["tags"].as_array().expect("tags").iter().map(|tag| &tag["name"]).collect();
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        assert!(
            operation["summary"].as_str().is_some_and(|text| text.ends_with(['.', '?'])),
            "{method} {path}"
        );
        assert!(tags.contains(&&operation["tags"][0]), "{method} {path}");
        assert!(names.insert(operation["operationId"].as_str().expect("a name")), "{method} {path}");
    }
}

#[test]
fn every_reference_points_at_something() {
    fn walk(document: &Value, part: &Value, found: &mut usize) {
        if let Some(pointer) = part["$ref"].as_str() {
            assert!(document.pointer(pointer.trim_start_matches('#')).is_some(), "{pointer}");
            *found += 1;
        }
        let fields = part.as_object().into_iter().flat_map(|fields| fields.values());
        fields.chain(part.as_array().into_iter().flatten()).for_each(|inner| walk(document, inner, found));
    }
    let (document, mut found) = (document(), 0);
    walk(&document, &document, &mut found);
    assert!(found > 50, "{found}");
}

#[test]
fn every_field_and_parameter_is_explained_or_speaks_for_itself() {
    const PLAIN: [&str; 8] = ["uid", "name", "group", "user", "gid", "error", "seq", "rows"];
    let document = document();
    for (schema, described) in document["components"]["schemas"].as_object().expect("schemas") {
        for (name, field) in described["properties"].as_object().into_iter().flatten() {
            let explained = resolved(&document, field)["description"].is_string();
            assert!(explained || PLAIN.contains(&name.as_str()), "{schema}.{name}");
        }
    }
    for (path, _, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(parameter["description"].is_string(), "{path}: {parameter}");
        }
    }
}

/// The words of a text that stand between backticks.
fn marked(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn each_setting_stands_in_the_row_and_at_the_call_that_sets_it() {
    let document = document();
    let bodies = document["components"]["schemas"]["EntryBody"]["oneOf"].as_array().expect("bodies");
    let [body] = bodies.iter().filter(|body| body["properties"]["value"].is_object()).collect::<Vec<_>>()[..]
    else {
        panic!("one body has the value of a setting");
    };
    let named = |part: &Value| part["description"].as_str().expect("a description").to_owned();
    let all = Setting::ALL.map(Setting::as_str).into();
    assert_eq!(marked(&named(&body["properties"]["name"])), all);
    for (path, is_for_all) in
        [("/api/v1/settings/{name}", true), ("/api/v1/conversations/{id}/settings/{name}", false)]
    {
        let parameters = document["paths"][path]["put"]["parameters"].as_array().expect("parameters");
        let name = parameters.iter().find(|parameter| parameter["name"] == "name").expect("a name");
        let set_there = Setting::ALL.into_iter().filter(|setting| setting.is_for_all() == is_for_all);
        assert_eq!(marked(&named(name)), set_there.map(Setting::as_str).collect(), "{path}");
    }
}

#[test]
fn the_description_and_the_protocol_know_each_kind_of_row() {
    const PROTOCOL: &str = include_str!("../../../../docs/PROTOCOL.md");
    let document = document();
    let words = |of_programs| -> BTreeSet<&str> {
        let word = |kind: Kind| if kind == Kind::App { of_programs } else { kind.as_str() };
        Kind::ALL.into_iter().map(word).collect()
    };
    let described = &document["components"]["schemas"]["Entry"]["properties"]["kind"]["description"];
    assert_eq!(marked(described.as_str().expect("a description")), words("app.*"));

    let (_, chapter) = PROTOCOL.split_once("\n### Rows\n").expect("a chapter on rows");
    let (chapter, _) = chapter.split_once("\n### ").expect("a next chapter");
    let is_list = |line: &&str| line.starts_with("| `kind` |");
    let list = chapter.lines().find(is_list).expect("a line with all kinds");
    let kinds = list.splitn(4, '|').last().expect("what it means");
    assert_eq!(marked(kinds), words("app."));
    // The chapter explains each of them; another document explains the rows of programs.
    let rest: String = chapter.lines().filter(|line| !is_list(line)).collect::<Vec<_>>().join("\n");
    for word in words("message") {
        assert!(marked(&rest).contains(word), "{word}");
    }
}

#[test]
fn the_limits_are_the_configured_ones() {
    let limits = LimitsSection { text_characters: 7, group_members: 3, ..LimitsSection::default() };
    let document = describe(&limits);
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["NewText"]["properties"]["text"]["maxLength"], 7);
    assert_eq!(schemas["NewGroup"]["properties"]["members"]["maxItems"], 3);
    assert_eq!(schemas["NewComment"]["properties"]["text"]["minLength"], 1);
    assert!(!document.to_string().contains("maxLength\":8000"), "the default is not what is in force");
}

#[test]
fn whole_numbers_have_the_range_that_the_server_takes() {
    let document = document();
    let fields = |schema: &str| document["components"]["schemas"][schema]["properties"].clone();
    assert_eq!(fields("Person")["uid"]["maximum"], u32::MAX);
    assert_eq!(fields("Seq")["seq"]["maximum"], 9_007_199_254_740_991_u64);
    assert!(!document.to_string().contains("\"int64\"") && !document.to_string().contains("\"int32\""));
}

#[test]
fn the_page_shows_parameters_bodies_answers_and_codes() {
    let page = page::render(&document());
    assert!(!page.contains("<script>") && !page.contains("javascript:"));
    for part in [
        "<code>POST /api/v1/messages</code>",
        "<code>direction</code> <small>in the query</small>",
        "<code>body.text</code> <small class=\"needed\">required</small>",
        "text, at most 8000 characters",
        "<code>to.user</code>",
        "<a href=\"#type-Sent\">Sent</a>",
        "<code>client_id_reused</code>",
        "href=\"/docs/websocket\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_type_of_each_problem_leads_to_an_explanation() {
    let shown = page::render(&document());
    for code in crate::http::codes::CODES.iter().map(|known| known.code) {
        assert_eq!(shown.matches(&format!(" id=\"code-{code}\"")).count(), 1, "{code}");
    }
}
