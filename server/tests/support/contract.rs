//! The OpenAPI document as a judge: each answer that a test gets over HTTP is one that its operation names, of the form
//! that the document gives, with no field and no code more.
//!
//! The document is that of a server with the defaults, asked for once.

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use reqwest::Method;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::{Answer, TestApp};

/// Where the document lies for the validator.
const AT: &str = "https://tidemark.example/openapi.json";

/// Everything that is described.
pub(crate) struct Contract {
    operations: Vec<Operation>,
    problem: SchemaIndex,
    schemas: Schemas,
}

struct Operation {
    name: String,
    method: Method,
    path: String,
    answers: Vec<Described>,
    /// The schema that a body must meet to be accepted.
    body: Option<SchemaIndex>,
}

struct Described {
    status: u16,
    /// The type of the body and its form; an answer without a body has none.
    content: Option<(String, SchemaIndex)>,
    retry_after: bool,
}

/// The contract of a server of this version.
pub(crate) async fn contract() -> &'static Contract {
    static CONTRACT: OnceCell<Contract> = OnceCell::const_new();
    let made = CONTRACT.get_or_init(|| async {
        let app = TestApp::start().await;
        let answer = app.send_unjudged(app.request(Method::GET, "/api/v1/openapi.json")).await;
        Contract::of(&answer.ok(200))
    });
    made.await
}

impl Contract {
    /// The contract that `document` describes.
    pub(crate) fn of(document: &Value) -> Contract {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        compiler.add_resource(AT, with_all_fields_named(document.clone())).expect("a document");
        // Requests may have more fields than the document names.
        let open = format!("{AT}.open");
        compiler.add_resource(&open, document.clone()).expect("a document");
        let mut schemas = Schemas::new();
        let mut compile = |document: &str, pointer: &str| {
            let pointer = pointer.replace('{', "%7B").replace('}', "%7D");
            compiler
                .compile(&format!("{document}#{pointer}"), &mut schemas)
                .unwrap_or_else(|error| panic!("{error:#}"))
        };
        let mut operations = Vec::new();
        for (path, methods) in fields(&document["paths"]) {
            for (method, operation) in fields(methods) {
                let at = format!("/paths/{}/{method}", escaped(path));
                let answers = fields(&operation["responses"]).map(|(status, answer)| {
                    let (at, answer) = match answer["$ref"].as_str().and_then(|place| place.strip_prefix('#'))
                    {
                        Some(place) => (place.to_owned(), document.pointer(place).expect("a shared answer")),
                        None => (format!("{at}/responses/{status}"), answer),
                    };
                    let content = fields(&answer["content"]).next().map(|(kind, _)| {
                        (kind.clone(), compile(AT, &format!("{at}/content/{}/schema", escaped(kind))))
                    });
                    let retry_after = answer["headers"]["Retry-After"].is_object();
                    Described { status: status.parse().expect("a status"), content, retry_after }
                });
                let answers = answers.collect();
                let body = operation["requestBody"]
                    .is_object()
                    .then(|| compile(&open, &format!("{at}/requestBody/content/application~1json/schema")));
                operations.push(Operation {
                    name: operation["operationId"].as_str().expect("a name").to_owned(),
                    method: method.to_uppercase().parse().expect("a method"),
                    path: path.clone(),
                    answers,
                    body,
                });
            }
        }
        // An address that is named wholly comes before one with variable parts.
        operations.sort_by_key(|operation| operation.path.matches('{').count());
        let problem = compile(AT, "/components/schemas/Problem");
        Contract { operations, problem, schemas }
    }

    /// Whether `answer` is one that the call may get.
    pub(crate) fn judge(
        &self,
        method: &Method,
        path: &str,
        body: Option<&[u8]>,
        answer: &Answer,
    ) -> Result<(), String> {
        let here: Vec<&Operation> =
            self.operations.iter().filter(|operation| matches(&operation.path, path)).collect();
        if here.is_empty() && !path.starts_with("/api/") {
            return Ok(());
        }
        let status = answer.status.as_u16();
        // HEAD is answered as GET, without the body.
        let asked = if method == Method::HEAD { &Method::GET } else { method };
        let Some(operation) = here.iter().find(|operation| operation.method == *asked) else {
            self.check(self.problem, &answer.text)?;
            let code = answer.json()["code"].as_str().map(str::to_owned);
            let expected = if here.is_empty() { "not_found" } else { "method_not_allowed" };
            return match code.as_deref() {
                Some("foreign_origin") => Ok(()),
                Some(code) if code == expected => Ok(()),
                _ => Err(format!("no operation, and not {expected}")),
            };
        };
        let described = operation.answers.iter().find(|described| described.status == status);
        let described = described.ok_or_else(|| format!("{} names no {status}", operation.name))?;
        let Some((kind, schema)) = described.content.as_ref().filter(|_| method != Method::HEAD) else {
            return if answer.text.is_empty() { Ok(()) } else { Err("it has a body".to_owned()) };
        };
        if !answer.header("content-type").starts_with(kind.as_str()) {
            return Err(format!("it is not {kind}"));
        }
        if kind == "application/json" || kind.ends_with("+json") {
            self.check(*schema, &answer.text)?;
            let retryable = answer.json()["retryable"] == true;
            if retryable == answer.header("retry-after").is_empty() || (retryable && !described.retry_after) {
                return Err("Retry-After goes with what is retryable, and is named".to_owned());
            }
        }
        // Each message of a batch is judged by itself.
        match operation.body.filter(|_| answer.status.is_success() && operation.name != "sendBatch") {
            Some(schema) => self.check(schema, &String::from_utf8_lossy(body.unwrap_or_default())),
            None => Ok(()),
        }
    }

    /// Whether the operation names `status`.
    pub(crate) fn names(&self, operation: &str, status: u16) -> bool {
        let mut found = self.operations.iter().filter(|known| known.name == operation);
        found.any(|known| known.answers.iter().any(|described| described.status == status))
    }

    fn check(&self, schema: SchemaIndex, text: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        self.schemas.validate(&value, schema).map_err(|error| format!("{error:#}"))
    }
}

/// `document` with a word in each object that it has no other fields than those that are named. Left out: parts of a whole, which
/// has the word itself.
fn with_all_fields_named(mut document: Value) -> Value {
    fn walk(part: &mut Value, is_part: bool) {
        match part {
            Value::Object(inner) => {
                for (name, value) in inner.iter_mut() {
                    match value.as_array_mut().filter(|_| name == "allOf") {
                        Some(parts) => parts.iter_mut().for_each(|part| walk(part, true)),
                        None => walk(value, false),
                    }
                }
                let is_object = inner.get("type").is_some_and(|kind| kind == "object");
                if !is_part
                    && (inner.contains_key("allOf") || (is_object && inner.contains_key("properties")))
                {
                    inner.insert("unevaluatedProperties".to_owned(), false.into());
                }
            }
            Value::Array(parts) => parts.iter_mut().for_each(|part| walk(part, false)),
            _ => {}
        }
    }
    walk(&mut document, false);
    document
}

fn fields(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// A name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether `path` is one of those for which `template` stands.
fn matches(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let fits = |(step, given): (&&str, &&str)| step == given || (step.starts_with('{') && !given.is_empty());
    template.len() == path.len() && template.iter().zip(&path).all(fits)
}
