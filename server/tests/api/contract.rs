//! The description of the interface is true: every call that it lists is made in good and in bad ways, and each answer is one that it
//! names, of the form that it gives.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::{Answer, Person, TestApp, client_id, message};

/// What `part` stands for, where it is a reference.
fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(pointer) => document.pointer(pointer.trim_start_matches('#')).expect("it points at something"),
        None => part,
    }
}

/// Checks `value` against the part of JSON Schema that the document uses.
fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let schema = resolved(document, schema);
    let wrong = |what: &str| Err(format!("{what}: {value} against {schema}"));
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| check(document, choice, value).is_ok()).count();
        return if fitting == 1 { Ok(()) } else { wrong("not exactly one") };
    }
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("the test does not know the type {other}"),
    };
    let fits = match &schema["type"] {
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if !fits {
        return wrong("another type");
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        return wrong("none of the choices");
    }
    if let Some(number) = value.as_u64()
        && (schema["minimum"].as_u64().is_some_and(|least| number < least)
            || schema["maximum"].as_u64().is_some_and(|most| number > most))
    {
        return wrong("out of range");
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            return wrong(name);
        }
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(field) = value.get(name) {
            check(document, inner, field)?;
        }
    }
    match value.as_array() {
        Some(items) if schema["items"].is_object() => {
            items.iter().try_for_each(|item| check(document, &schema["items"], item))
        }
        _ => Ok(()),
    }
}

/// A world in which every call can succeed.
struct World {
    app: TestApp,
    document: Value,
    bob: Person,
    gid: u64,
    code: String,
    said: u128,
    /// Calls and statuses that were seen.
    seen: BTreeSet<(String, String)>,
}

impl World {
    async fn new() -> World {
        let app = TestApp::start_with(|config| {
            config.limits.log_ins_per_name_per_minute = 0;
            config.limits.sign_ups_per_address_per_minute = 0;
        })
        .await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        app.say(&bob, &ann, 9_000, "hello").await;
        let group = app.post(&ann, "/api/v1/groups", json!({"name": "us"})).await.ok(201);
        let gid = group["gid"].as_u64().expect("a number");
        let made = app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
        let code = made["code"].as_str().expect("a code").to_owned();
        let document = app.get(&ann, "/api/v1/openapi.json").await.ok(200);
        World { app, document, bob, gid, code, said: 0, seen: BTreeSet::new() }
    }

    /// A body with which the call succeeds.
    fn body(&mut self, operation: &str) -> Value {
        self.said += 1;
        let (said, to) = (self.said, json!({"user": self.bob.uid}));
        match operation {
            "signUp" => json!({"name": format!("somebody {said}"), "password": "correct horse"}),
            "logIn" => json!({"name": "ann", "password": "correct horse"}),
            "send" => message(said, to, "hi"),
            "sendBatch" => json!({"messages": [message(said, to, "hi"), {"client_id": client_id(1)}]}),
            "addMember" => json!({"uid": self.bob.uid}),
            "createGroup" => json!({"name": "more", "members": [self.bob.uid]}),
            "markRead" => json!({"message_id": 1}),
            "makeInvite" => json!({"uses": 2, "expires_in_seconds": 60}),
            other => panic!("the test has no body for {other}"),
        }
    }

    /// The path with its variable parts filled in.
    fn path(&self, path: &str) -> String {
        path.replace("{uid}", &self.bob.uid.to_string())
            .replace("{gid}", &self.gid.to_string())
            .replace("{code}", &self.code)
            .replace("{id}", &format!("u:{}", self.bob.uid))
    }

    async fn ask(
        &mut self,
        call: &Call,
        path: &str,
        who: Option<&Person>,
        body: Option<Vec<u8>>,
        foreign: bool,
    ) {
        let mut request = self.app.request(call.method.clone(), path);
        if let Some(who) = who {
            request = request.bearer_auth(&who.token);
        }
        if let Some(body) = &body {
            request = request.body(body.clone());
        }
        if foreign {
            request = request.header("origin", "https://evil.example");
        }
        let answer = self.app.send(request).await;
        let shown = body.map(|body| String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned());
        self.judge(call, &answer, &format!("{} {path} {shown:?}", call.operation));
    }

    fn judge(&mut self, call: &Call, answer: &Answer, about: &str) {
        let status = answer.status.as_u16().to_string();
        let Some(described) = call.responses.get(&status) else {
            panic!("{about}: {status} is not described: {}", answer.text);
        };
        let described = resolved(&self.document, described);
        for (kind, content) in described["content"].as_object().into_iter().flatten() {
            assert!(answer.header("content-type").starts_with(kind.as_str()), "{about}: {status}");
            check(&self.document, &content["schema"], &answer.json())
                .unwrap_or_else(|wrong| panic!("{about}: {status}: {wrong}"));
        }
        if described["content"].is_null() {
            assert_eq!(answer.text, "", "{about}: {status}");
        }
        self.seen.insert((call.operation.clone(), status));
    }
}

struct Call {
    path: String,
    method: Method,
    operation: String,
    /// Whether one has to be logged in.
    guarded: bool,
    /// Whether it takes a body.
    body: bool,
    responses: Map<String, Value>,
}

fn calls(document: &Value) -> Vec<Call> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().expect("methods").iter().map(move |(method, call)| Call {
            path: path.clone(),
            method: method.to_uppercase().parse().expect("a method"),
            operation: call["operationId"].as_str().unwrap_or(path).to_owned(),
            guarded: call["security"].is_null(),
            body: call["requestBody"].is_object(),
            responses: call["responses"].as_object().expect("responses").clone(),
        })
    });
    all.filter(|call| call.path.starts_with("/api/")).collect()
}

#[tokio::test]
async fn every_described_call_answers_as_described() {
    let mut world = World::new().await;
    let calls = calls(&world.document);
    assert!(calls.len() > 15, "the test no longer finds the calls: {}", calls.len());
    for call in &calls {
        let path = match call.operation.as_str() {
            "findUsers" => format!("{}?name=b", call.path),
            _ => world.path(&call.path),
        };
        // A session of its own: some calls end it.
        let ann = world.app.log_in("ann").await;
        let good = call.body.then(|| world.body(&call.operation).to_string().into_bytes());
        if call.guarded {
            world.ask(call, &path, None, good.clone(), false).await;
        }
        if call.method != Method::GET {
            world.ask(call, &path, Some(&ann), good.clone(), true).await;
        }
        if call.body {
            let large = vec![b' '; 5_000_000];
            for bad in [&b"{"[..], b"[]", b"null", b"{}", b"\"x\"", b"\xff", b"", &large] {
                world.ask(call, &path, Some(&ann), Some(bad.to_vec()), false).await;
            }
        }
        for unknown in ["x", "4000000000", "-1", "%F0%9F", "u:1", "g:999", "99999999999999999999"] {
            let filled = ["{uid}", "{gid}", "{code}", "{id}"]
                .iter()
                .fold(call.path.clone(), |path, part| path.replace(part, unknown));
            if filled != call.path {
                world.ask(call, &filled, Some(&ann), good.clone(), false).await;
            }
        }
        if call.method == Method::GET {
            for query in
                ["?limit=0", "?limit=x", "?start=5&end=5", "?before=-1", "?name=a&name=b", "?%ff=%ff"]
            {
                world.ask(call, &format!("{}{query}", world.path(&call.path)), Some(&ann), None, false).await;
            }
        }
        let asking = if call.operation == "acceptInvite" { world.app.log_in("bob").await } else { ann };
        world.ask(call, &path, Some(&asking), good, false).await;
    }
    for call in &calls {
        let fine = |status: &String| status.starts_with('2');
        let seen = |status: &String| world.seen.contains(&(call.operation.clone(), status.clone()));
        assert!(
            call.responses.keys().filter(|status| fine(status)).any(seen),
            "{} never succeeded",
            call.operation
        );
    }
}
