//! What a program answered before it was killed, as `../api/fixtures/write.sh` notes it, held against what is there now.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tidemark_test_support::until::until;

use crate::support::{Person, TestApp, client_id, message};

/// What the tests send themselves is numbered from here.
pub(crate) const OWN: u128 = 900;

/// What the version that wrote a fixture answered before it was killed.
pub(crate) struct Answers(Value);

impl Answers {
    pub(crate) fn of(folder: &Path) -> Answers {
        let text = fs::read_to_string(folder.join("answers.json")).expect("readable");
        Answers(serde_json::from_str(&text).expect("JSON"))
    }

    pub(crate) fn list(&self, name: &str) -> &[Value] {
        self.0[name].as_array().expect("a list")
    }

    /// The largest id in the group of answers, and 0 without any.
    fn largest(&self, name: &str, field: &str) -> u64 {
        self.list(name).iter().filter_map(|one| one[field].as_u64()).max().unwrap_or_default()
    }

    /// Logs everybody in, who must be who they were.
    pub(crate) async fn log_in(&self, app: &TestApp) -> Vec<Person> {
        let mut people = Vec::new();
        for one in self.list("people") {
            let person = app.log_in(one["name"].as_str().expect("a name")).await;
            assert_eq!(person.uid, one["uid"], "{}", person.name);
            people.push(person);
        }
        people
    }

    /// The names of everybody are found by their parts in the end, and from then on nobody new can be taken for one of them.
    pub(crate) async fn names_are_known(&self, app: &TestApp) {
        let people = self.log_in(app).await;
        // The first versions had nobody.
        let Some(person) = people.first() else { return };
        for one in self.list("people") {
            let name = one["name"].as_str().expect("a name");
            let path = format!("/api/v1/users?name={}", &name[1..]);
            until(&format!("{name} is found"), async || {
                let found = app.get(person, &path).await.ok(200);
                found.as_array().expect("people").iter().any(|found| found["uid"] == one["uid"])
            })
            .await;
            let look_alike = name.replace('a', "\u{430}").replace('o', "0");
            if look_alike != name {
                let body = json!({"name": look_alike, "password": "correct horse"});
                let refused = app.post_as_nobody("/api/v1/accounts", body).await;
                assert_eq!(refused.refused(409), "name_resembles", "{look_alike}");
            }
        }
    }

    /// Everything that was answered is still so, and what was accepted has reached everybody, once. Answers the people and their rows.
    pub(crate) async fn check(&self, app: &TestApp) -> Vec<(Person, Vec<Value>)> {
        let mut all = Vec::new();
        for (person, before) in self.log_in(app).await.into_iter().zip(self.list("people")) {
            let rows = app.rows(&person).await;
            let seen = before["rows"].as_array().expect("rows");
            assert_eq!(&rows[..seen.len()], seen, "{}", person.name);
            assert!(rows.is_sorted_by_key(id), "{}", person.name);
            let once: BTreeSet<String> = rows.iter().filter_map(key).collect();
            assert_eq!(
                once.len(),
                rows.iter().filter_map(key).count(),
                "{}: no row is there twice",
                person.name
            );

            let lines = app.get(&person, "/api/v1/conversations").await.ok(200);
            for was in before["conversations"].as_array().expect("conversations") {
                let is = lines.as_array().expect("lines").iter().find(|line| line["id"] == was["id"]);
                let is = is.unwrap_or_else(|| panic!("{}: {} is gone", person.name, was["id"]));
                assert_eq!(
                    (&is["title"], &is["read_to"]),
                    (&was["title"], &was["read_to"]),
                    "{}",
                    person.name
                );
                // What was accepted at the kill is newer. Later versions say more of a line.
                if id(&is["last"]) == id(&was["last"]) {
                    for (field, value) in was.as_object().expect("a line") {
                        assert_eq!(&is[field], value, "{}: {field}", person.name);
                    }
                }
            }
            all.push((person, rows));
        }
        for group in self.list("groups") {
            let (member, _) = all.iter().find(|(person, _)| is_member(group, person)).expect("a member");
            let is = app.get(member, &format!("/api/v1/groups/{}", group["gid"])).await.ok(200);
            assert_eq!(is["name"], group["name"]);
            let members = is["members"].as_array().expect("members");
            let owners = members.iter().filter(|member| member["role"] == "owner").count();
            assert_eq!(owners, 1, "{is}");
            for (person, _) in &all {
                assert_eq!(is_member(&is, person), is_member(group, person), "{} in {is}", person.name);
            }
        }
        for sent in self.list("sent") {
            let (sender, _) = all.iter().find(|(person, _)| person.name == sent["by"]).expect("the sender");
            let again = app.post(sender, "/api/v1/messages", sent["body"].clone()).await.ok(200);
            assert_eq!(again, sent["answer"], "the first answer");
            let mut other = sent["body"].clone();
            other["body"]["text"] = json!("something else");
            app.post(sender, "/api/v1/messages", other).await.refused(409);
            let to = &sent["body"]["to"];
            let group = self.list("groups").iter().find(|group| group["gid"] == to["group"]);
            let receives = |person: &Person| match group {
                Some(group) => is_member(group, person),
                None => to["user"] == person.uid || sender.uid == person.uid,
            };
            for (person, rows) in all.iter().filter(|(person, _)| receives(person)) {
                let copies = rows.iter().filter(|row| row["client_id"] == sent["body"]["client_id"]);
                assert_eq!(copies.count(), 1, "{} of {}", sent["body"], person.name);
            }
        }
        all
    }

    /// What is made now has larger numbers than all that there is. `start`: how often that was done.
    pub(crate) async fn go_on(&self, app: &TestApp, all: &[(Person, Vec<Value>)], start: u128) {
        if let [(ann, anns), (bob, bobs), ..] = all {
            let sent = app.say(ann, bob, OWN + start, "new").await;
            assert!(sent > anns.last().map_or(0, id), "{sent}");
            let received = app.rows(bob).await;
            let last = received.last().expect("a row");
            assert_eq!(
                (&last["client_id"], &last["body"]["text"]),
                (&json!(client_id(OWN + start)), &json!("new"))
            );
            assert!(id(last) > bobs.last().map_or(0, id), "{last}");
            let again = message(OWN + start, json!({"user": bob.uid}), "new");
            assert_eq!(id(&app.post(ann, "/api/v1/messages", again).await.ok(200)), sent);
        }
        let guest = app.sign_up(&format!("guest{start}")).await;
        assert!(guest.uid > self.largest("people", "uid"), "{}", guest.uid);
        let made = app.post(&guest, "/api/v1/groups", json!({"name": "new"})).await.ok(201);
        assert!(made["gid"].as_u64() > Some(self.largest("groups", "gid")), "{made}");
    }

    /// Sessions and invitations of that time are as good as then. After [`go_on`](Self::go_on).
    pub(crate) async fn let_in(&self, app: &TestApp, all: &[(Person, Vec<Value>)], start: u128) {
        for ((person, _), before) in all.iter().zip(self.list("people")) {
            let Some(token) = before["token"].as_str() else { continue };
            let session = Person { token: token.to_owned(), ..person.clone() };
            assert_eq!(
                app.get(&session, "/api/v1/me").await.ok(200)["uid"],
                person.uid,
                "the session goes on"
            );
        }
        if let Some(code) = self.0["invite"].as_str() {
            let guest = app.log_in(&format!("guest{start}")).await;
            app.post(&guest, &format!("/api/v1/invites/{code}"), json!({})).await.ok(200);
        }
    }
}

pub(crate) fn id(row: &Value) -> u64 {
    row["message_id"].as_u64().unwrap_or_default()
}

/// By what a row is known as the copy of a message: sender and idempotency key.
fn key(row: &Value) -> Option<String> {
    Some(format!("{} {}", row["sender"], row["client_id"].as_str()?))
}

fn is_member(group: &Value, person: &Person) -> bool {
    group["members"].as_array().expect("members").iter().any(|member| member["uid"] == person.uid)
}
