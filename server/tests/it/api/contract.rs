//! The description of the interface is true: every call that it lists is made in good and in bad ways, and each answer
//! is one that it names, of the form that it gives. `support/contract.rs` holds every answer of these tests against it.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Map, Value, json};

use crate::support::contract::Contract;
use crate::support::{Answer, Person, TestApp, client_id, message};

/// A world in which every call can succeed.
struct World {
    app: TestApp,
    document: Value,
    bob: Person,
    gid: u64,
    code: String,
    /// A message that Ann sent to Bob.
    own: u64,
    /// Another one, which nobody takes back.
    lasting: u64,
    /// A message that Bob sent to Ann, as Ann has it.
    theirs: u64,
    /// One that Ann sent to the group.
    to_group: u64,
    /// Two moments of Ann.
    moments: [u64; 2],
    sent: u128,
    /// Recovery codes of Cat.
    codes: Vec<String>,
    /// Calls and statuses that were seen.
    seen: BTreeSet<(String, String)>,
}

impl World {
    async fn new() -> World {
        let app = TestApp::start_with(|config| {
            config.limits.log_ins_per_name_per_minute = 0;
            config.limits.sign_ups_per_address_per_minute = 0;
            config.accounts.open_invites = 100;
            config.limits.downloads_per_account_per_day = 0;
        })
        .await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        app.say(&bob, &ann, 9_000, "hello").await;
        let own = app.say(&ann, &bob, 9_001, "hello to you").await;
        let lasting = app.say(&ann, &bob, 9_004, "hello again").await;
        app.say(&bob, &ann, 9_005, "and to you").await;
        let rows = app.rows(&ann).await;
        let theirs = rows.iter().find(|row| row["body"]["text"] == "and to you").expect("a message");
        let theirs = theirs["message_id"].as_u64().expect("an id");
        let mut moments = [0; 2];
        for (n, moment) in (9_002..).zip(&mut moments) {
            let body = json!({"client_id": client_id(n), "text": "sun"});
            *moment =
                app.post(&ann, "/api/v1/moments", body).await.ok(201)["message_id"].as_u64().expect("an id");
        }
        let group = app.post(&ann, "/api/v1/groups", json!({"name": "us"})).await.ok(201);
        let gid = group["gid"].as_u64().expect("a number");
        let to_us = message(9_008, json!({"group": gid}), "hello to us");
        let to_group = app.post(&ann, "/api/v1/messages", to_us).await.ok(201)["message_id"].clone();
        let to_group = to_group.as_u64().expect("an id");
        let made = app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), json!({})).await.ok(201);
        let code = made["code"].as_str().expect("a code").to_owned();
        let cat = json!({"name": "cat", "password": "correct horse"});
        let made = app.post_as_nobody("/api/v1/accounts", cat).await.ok(201);
        let codes = serde_json::from_value(made["recovery_codes"].clone()).expect("texts");
        let document = app.get(&ann, "/api/v1/openapi.json").await.ok(200);
        let seen = BTreeSet::new();
        World { app, document, bob, gid, code, own, lasting, theirs, to_group, moments, sent: 0, codes, seen }
    }

    /// A body with which the call succeeds.
    fn body(&mut self, operation: &str) -> Value {
        self.sent += 1;
        let (sent, to) = (self.sent, json!({"user": self.bob.uid}));
        match operation {
            "signUp" => json!({"name": format!("somebody {sent}"), "password": "correct horse"}),
            "logIn" => json!({"name": "ann", "password": "correct horse"}),
            "recover" => {
                let code = self.codes.pop().expect("a code");
                json!({"name": "cat", "code": code, "password": "correct horse"})
            }
            "makeRecoveryCodes" | "deleteAccount" => json!({"password": "correct horse"}),
            "inviteToSignUp" => json!({"uses": 2}),
            "subscribeToPush" => json!({"endpoint": "https://push.example.org/ann", "keys": {
                "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
                "auth": "BTBZMqHH6r4Tts7J_aSIgg",
            }}),
            "nameSession" => json!({"name": "my phone"}),
            "changePassword" => json!({"current": "correct horse", "new": "correct horse"}),
            // What it is called already.
            "rename" => json!({"name": "ann"}),
            "send" => message(sent, to, "hi"),
            "sendBatch" => json!({"messages": [message(sent, to, "hi"), {"client_id": client_id(1)}]}),
            "addMember" => json!({"uid": self.bob.uid}),
            "createGroup" => json!({"name": "more", "members": [self.bob.uid]}),
            "describeGroup" => json!({"topic": "Sundays"}),
            "setRole" => json!({"role": "administrator"}),
            "mute" => json!({"seconds": 60}),
            "reportMessage" | "reportPerson" => json!({"client_id": client_id(sent), "reason": "spam"}),
            "edit" => json!({"client_id": client_id(sent), "body": {"text": "hello again"}}),
            "react" => json!({"client_id": client_id(sent), "emoji": ["👍"]}),
            "pin" => json!({"client_id": client_id(sent), "pinned": true}),
            "star" => json!({"client_id": client_id(sent), "starred": true}),
            "recall" | "delete" | "deleteMoment" => json!({"client_id": client_id(sent)}),
            "set" | "setForAll" => json!({"client_id": client_id(sent), "value": {}}),
            "keep" => json!({"client_id": client_id(sent), "keep_seconds": 604_800}),
            "befriend" => json!({"client_id": client_id(sent), "wanted": true}),
            "postMoment" | "comment" => json!({"client_id": client_id(sent), "text": "sun"}),
            "likeMoment" => json!({"client_id": client_id(sent), "liked": true}),
            "markRead" => json!({"message_id": 1}),
            "makeInvite" => json!({"uses": 2, "expires_in_seconds": 60}),
            other => panic!("the test has no body for {other}"),
        }
    }

    /// The path with its variable parts filled in.
    fn path(&self, call: &Call) -> String {
        let row = match call.operation.as_str() {
            // The others need theirs.
            "delete" => 1,
            "deleteMoment" => self.moments[1],
            "star" => self.lasting,
            "reportMessage" => self.theirs,
            "readers" => self.to_group,
            "likeMoment" | "comment" => self.moments[0],
            _ => self.own,
        };
        let setting = if call.operation == "set" { "mute" } else { "profile" };
        call.path
            .replace("{name}", setting)
            .replace("{uid}", &self.bob.uid.to_string())
            .replace("{gid}", &self.gid.to_string())
            .replace("{code}", &self.code)
            .replace("{message_id}", &row.to_string())
            .replace("{id}", &format!("u:{}", self.bob.uid))
    }

    /// Where a call has put Bob out, or muted him.
    async fn let_bob_in_again(&self, operation: &str, by: &Person) {
        let group = format!("/api/v1/groups/{}", self.gid);
        if operation == "mute" {
            self.app.delete(by, &format!("{group}/members/{}/mute", self.bob.uid)).await.ok(204);
        }
        if operation == "ban" {
            self.app.delete(by, &format!("{group}/bans/{}", self.bob.uid)).await.ok(204);
        }
        if operation == "removeMember" {
            self.app.post(by, &format!("{group}/members"), json!({"uid": self.bob.uid})).await.ok(204);
        }
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
        let status = self.app.send(request).await.status.as_u16().to_string();
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
            "profiles" => format!("{}?uids=10001", call.path),
            "search" => format!("{}?q=hello", call.path),
            _ => world.path(call),
        };
        // A session of its own: some calls end it.
        let ann = match call.operation.as_str() {
            "deleteAccount" => world.app.sign_up("leaver").await,
            _ => world.app.log_in("ann").await,
        };
        let path = match call.operation.as_str() {
            "revokeInvite" => {
                let invites = format!("/api/v1/groups/{}/invites", world.gid);
                let made = world.app.post(&ann, &invites, json!({})).await.ok(201);
                let code = made["code"].as_str().expect("a code").to_owned();
                world.path(call).replace(&world.code, &code)
            }
            "endSignUpInvite" => {
                let made = world.app.post(&ann, "/api/v1/sign-up-invites", json!({})).await.ok(201);
                call.path.replace("{id}", made["id"].as_str().expect("an id"))
            }
            "endSession" | "nameSession" => {
                let sessions = world.app.get(&ann, "/api/v1/sessions").await.ok(200);
                call.path.replace("{id}", sessions[0]["id"].as_str().expect("an id"))
            }
            "dismissReport" => {
                let said = message(9_006, json!({"group": world.gid}), "to all");
                world.app.post(&world.bob, "/api/v1/messages", said).await.ok(201);
                let rows = world.app.rows(&ann).await;
                let row = rows.iter().find(|row| row["body"]["text"] == "to all").expect("a message");
                let path = format!("/api/v1/conversations/g:{}/messages/{}", world.gid, row["message_id"]);
                let report = json!({"client_id": client_id(9_007), "reason": "other"});
                world.app.post(&ann, &format!("{path}/report"), report).await.ok(204);
                let reports = format!("/api/v1/groups/{}/reports", world.gid);
                let number = world.app.get(&ann, &reports).await.ok(200)["reports"][0]["number"].clone();
                world.path(call).replace("{number}", &number.to_string())
            }
            _ => path,
        };
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
            let filled = ["{uid}", "{gid}", "{code}", "{id}", "{name}"]
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
                world.ask(call, &format!("{}{query}", world.path(call)), Some(&ann), None, false).await;
            }
        }
        let asking = if call.operation == "acceptInvite" { world.app.log_in("bob").await } else { ann };
        world.ask(call, &path, Some(&asking), good, false).await;
        world.let_bob_in_again(&call.operation, &asking).await;
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

/// A change of the document.
type Change = fn(&mut Value);

#[tokio::test]
async fn what_is_not_described_is_noticed() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let document = app.get(&ann, "/api/v1/openapi.json").await.ok(200);
    let (me, nobody) = (app.get(&ann, "/api/v1/me").await, app.get(&ann, "/api/v1/users/1").await);
    let verdict = |change: Change, path: &str, answer: &Answer| {
        let mut changed = document.clone();
        change(&mut changed);
        Contract::of(&changed).judge(&Method::GET, path, None, answer)
    };
    let of_me = |change| verdict(change, "/api/v1/me", &me);
    let of_nobody = |change| verdict(change, "/api/v1/users/1", &nobody);
    assert_eq!((of_me(|_| {}), of_nobody(|_| {})), (Ok(()), Ok(())));

    let field: Change = |document| {
        let me = &mut document["components"]["schemas"]["Me"];
        me["required"] = json!(["uid"]);
        me["properties"].as_object_mut().expect("fields").remove("history");
    };
    let kind: Change =
        |document| document["components"]["schemas"]["Me"]["properties"]["uid"]["type"] = "string".into();
    let status: Change = |document| {
        let user = &mut document["paths"]["/api/v1/users/{uid}"]["get"];
        user["responses"].as_object_mut().expect("answers").remove("404");
    };
    let code: Change = |document| {
        let answer = &mut document["components"]["responses"]["unknown_user"]["content"];
        answer["application/problem+json"]["schema"]["allOf"][1]["properties"]["code"]["enum"] = json!(["x"]);
    };
    for (found, named) in [
        (of_me(field), "history"),
        (of_me(kind), "/uid"),
        (of_nobody(status), "user names no 404"),
        (of_nobody(code), "/code"),
    ] {
        let wrong = found.expect_err(named);
        assert!(wrong.contains(named), "{named}: {wrong}");
    }
}
