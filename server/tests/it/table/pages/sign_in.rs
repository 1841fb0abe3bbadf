//! Signing in: the keys that are let in, for how long, and to which tables.

use reqwest::Method;
use tidemark_test_support::until::until;

use super::visitor::{Visitor, make};
use crate::table::world::World;
use tidemark_table::wire::proto::KeyColumnType::String as Text;

#[tokio::test]
async fn an_access_key_lets_in_and_leads_on_to_what_was_asked_for() {
    let world = World::start().await;
    make(&world, "orders", &[("customer", Text)], 1).await;
    let mut visitor = Visitor::of(&world);
    let turned_away = visitor.get("/tables/orders?k1=a%20b").await;
    assert_eq!(turned_away.status, 303);
    assert_eq!(turned_away.header("location"), "/tables/sign-in?next=%2Ftables%2Forders%3Fk1%3Da%2520b");
    let card = visitor.sees(turned_away.header("location")).await;
    assert_eq!(card.after("name=\"next\" value=\"", "\"").as_deref(), Some("/tables/orders?k1=a%20b"));
    assert!(card.header("content-security-policy").contains("script-src 'self'"));

    let answer = visitor.sign_in(&world.key.id, &world.key.secret, "%2Ftables%2Forders%3Fk1%3Da%2520b").await;
    assert_eq!((answer.status, answer.header("location")), (303, "/tables/orders?k1=a%20b"));
    let cookie = answer.header("set-cookie");
    for part in ["tidemark_tables=TIDE", "; Path=/", "; HttpOnly", "; SameSite=Strict", "; Max-Age=28800"] {
        assert!(cookie.contains(part), "{part} in {cookie}");
    }
    assert!(!cookie.contains(&world.key.secret) && !cookie.contains("Secure"), "{cookie}");
    visitor.cookie = Some(answer.cookie().to_owned());
    let page = visitor.sees("/tables/orders?k1=a%20b").await;
    assert!(page.has("<h1>orders</h1>") && !page.has(&world.key.secret));
    assert_eq!(page.header("cache-control"), "no-store");
    let list = visitor.sees("/tables").await;
    assert!(list.has("<h1>Tables of testing</h1>") && list.has("href=\"/tables/orders\""), "{}", list.html);
    assert!(list.has("for 2 days") && list.has(&world.key.id) && !list.has(&world.key.secret));
}

#[tokio::test]
async fn a_wrong_key_or_secret_is_refused_in_one_sentence() {
    let world = World::start().await;
    let visitor = Visitor::of(&world);
    let refused = "Not signed in: the access key does not exist, or its secret is wrong.";
    for (id, secret) in [
        (world.key.id.as_str(), "wrong"),
        (world.key.id.as_str(), ""),
        ("TIDE00000000000000000000", world.key.secret.as_str()),
        ("%3Cscript%3E", "x"),
        ("", ""),
    ] {
        let answer = visitor.sign_in(id, secret, "https%3A%2F%2Fevil").await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, ""), "{id} {secret}");
        assert_eq!(answer.after("role=\"alert\">", "</p>").as_deref(), Some(refused));
        assert_eq!(answer.after("name=\"next\" value=\"", "\"").as_deref(), Some("/tables"));
        assert!(!answer.has("<script>") && !answer.has(&world.key.secret));
    }
    let broken = visitor.ask(Method::POST, "/tables/sign-in", &[], "next=x".to_owned()).await;
    assert_eq!(broken.status, 400);
    for cookie in ["", "x", "TIDE.1.2", "a.9999999999999.00"] {
        let visitor = Visitor::of(&world).holding(&format!("tidemark_tables={cookie}"));
        let answer = visitor.get("/tables").await;
        assert_eq!(answer.header("location"), "/tables/sign-in?next=%2Ftables&ended=yes");
    }
    let changed = Visitor::with(&world, &world.key).await.cookie.expect("signed in").replace('.', "0.");
    let visitor = Visitor::of(&world).holding(&changed);
    assert_eq!(visitor.get("/tables").await.status, 303);
}

#[tokio::test]
async fn a_revoked_key_ends_what_it_let_in() {
    let world = World::start().await;
    let key = world.make_key(&["--instance", "testing", "--read-only"]).await;
    let visitor = Visitor::with(&world, &key).await;
    visitor.sees("/tables").await;
    world.revoke(&key).await;
    until("it has ended", async || visitor.get("/tables").await.status == 303).await;
    let card = visitor.sees("/tables/sign-in?next=%2Ftables&ended=yes").await;
    assert!(card.has("Your sign-in has ended, or the key was revoked. Sign in again."));
    assert_eq!(visitor.sign_in(&key.id, &key.secret, "").await.status, 401);
    Visitor::with(&world, &world.key).await.sees("/tables").await;
}

#[tokio::test]
async fn a_key_opens_the_tables_of_its_own_instance_alone() {
    let world = World::start().await;
    make(&world, "orders", &[("customer", Text)], 1).await;
    let other = world.make_key(&["--instance", "another"]).await;
    let visitor = Visitor::with(&world, &other).await;
    let list = visitor.sees("/tables").await;
    assert!(
        list.has("There are no tables yet.") && list.has("client.create_table(") && !list.has("orders</a>")
    );
    for path in ["/tables/orders", "/tables/orders/row?k1=a", "/tables/inbox", "/tables/%3Cb%3E"] {
        let missing = visitor.get(path).await;
        assert_eq!(missing.status, 404, "{path}");
        assert!(missing.has("There is no such table") && missing.has("href=\"/tables\""), "{}", missing.html);
        assert!(!missing.has("<b>"));
    }
}

#[tokio::test]
async fn other_sites_neither_sign_anybody_in_nor_out() {
    let world = World::start().await;
    let visitor = Visitor::with(&world, &world.key).await;
    for path in ["/tables/sign-in", "/tables/sign-out"] {
        let foreign =
            visitor.ask(Method::POST, path, &[("origin", "https://evil.example")], String::new()).await;
        assert_eq!(foreign.status, 403, "{path}");
        assert_eq!(visitor.ask(Method::POST, path, &[], String::new()).await.status, 403, "{path}");
    }
    let (cookie, elsewhere) = (visitor.cookie.clone(), Visitor::with(&world, &world.key).await);
    let out =
        visitor.ask(Method::POST, "/tables/sign-out", &[("origin", &visitor.home)], String::new()).await;
    assert_eq!((out.status, out.header("location")), (303, "/tables/sign-in"));
    assert!(
        out.header("set-cookie").starts_with("tidemark_tables=; ")
            && out.header("set-cookie").contains("Max-Age=0")
    );
    // A kept copy of the cookie shows nothing either.
    for copy in [&cookie, &elsewhere.cookie] {
        let visitor = Visitor::of(&world).holding(copy.as_deref().expect("signed in"));
        assert_eq!(visitor.get("/tables").await.status, 303);
    }
    Visitor::with(&world, &world.key).await.sees("/tables").await;
}

#[tokio::test]
async fn under_https_the_cookie_belongs_to_this_host_alone() {
    let origin = "https://chat.example.org";
    let world = World::start_with(&[("TIDEMARK_SERVER__PUBLIC_URL", origin)]).await;
    let mut visitor = Visitor::of(&world);
    assert_eq!(visitor.sign_in(&world.key.id, &world.key.secret, "").await.status, 403, "not its origin");
    let body = format!("access_key_id={}&access_key_secret={}", world.key.id, world.key.secret);
    let answer = visitor.ask(Method::POST, "/tables/sign-in", &[("origin", origin)], body).await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("__Host-tidemark_tables=TIDE") && cookie.ends_with("; Secure"), "{cookie}");
    visitor.cookie = Some(answer.cookie().to_owned());
    visitor.sees("/tables").await;
}

#[tokio::test]
async fn attempts_are_limited_as_log_ins_are() {
    let world = World::start_with(&[("TIDEMARK_LIMITS__LOG_INS_PER_NAME_PER_MINUTE", "1")]).await;
    let visitor = Visitor::of(&world);
    for _ in 0..10 {
        assert_eq!(visitor.sign_in(&world.key.id, "wrong", "").await.status, 401);
    }
    let refused = visitor.sign_in(&world.key.id, &world.key.secret, "").await;
    assert_eq!((refused.status, refused.header("set-cookie")), (429, ""));
    assert!(refused.has("Not signed in: too many requests; try again in "), "{}", refused.html);
    assert!(refused.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0));
    let other = world.make_key(&["--instance", "testing"]).await;
    Visitor::with(&world, &other).await;
}

#[tokio::test]
async fn nothing_that_changes_a_table_is_reachable() {
    let world = World::start().await;
    make(&world, "orders", &[("customer", Text)], 1).await;
    let visitor = Visitor::with(&world, &world.key).await;
    for path in ["/tables", "/tables/orders", "/tables/orders/row?k1=a"] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let answer = visitor.ask(method.clone(), path, &[("origin", &visitor.home)], String::new()).await;
            assert_eq!(answer.status, 405, "{method} {path}");
        }
        let forms = visitor.get(path).await.html.matches("method=\"post\"").count();
        assert_eq!(forms, 1, "the one that signs out");
    }
    assert!(visitor.sees("/tables").await.has("href=\"/tables/orders\""));
}
