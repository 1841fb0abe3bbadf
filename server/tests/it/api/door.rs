//! Defences against strangers and other sites: origins, cookies, policies, forwarded headers, pages.

use reqwest::Method;
use serde_json::json;

use crate::support::{Answer, Person, Socket, TestApp};

const CREDENTIALS: &str = r#"{"name": "ann", "password": "correct horse"}"#;

async fn sign_up_from(app: &TestApp, origin: &str) -> Answer {
    let request = app.request(Method::POST, "/api/v1/accounts").header("origin", origin).body(CREDENTIALS);
    app.send(request).await
}

/// The part of a `Set-Cookie` that the browser sends back.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").split(';').next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn our_own_page_gets_its_token_as_a_cookie_that_works() {
    let app = TestApp::start().await;
    let own = format!("http://{}", app.address);
    let answer = sign_up_from(&app, &own).await;
    answer.ok(201);
    let line = answer.header("set-cookie");
    for part in ["tidemark_session=", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=7776000"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains("Secure"), "it would not work over http");
    let with_cookie = |method, path| app.request(method, path).header("cookie", cookie(&answer));
    app.send(with_cookie(Method::GET, "/api/v1/me")).await.ok(200);
    let ticket = "/api/v1/sessions/current/ticket";
    app.send(with_cookie(Method::POST, ticket).header("origin", &own)).await.ok(200);
    let out = app.send(with_cookie(Method::DELETE, "/api/v1/sessions/current").header("origin", &own)).await;
    out.ok(204);
    assert!(
        out.header("set-cookie").starts_with("tidemark_session=;")
            && out.header("set-cookie").contains("Max-Age=0")
    );
    app.send(with_cookie(Method::GET, "/api/v1/me")).await.refused(401);
}

#[tokio::test]
async fn a_browser_is_known_by_a_cookie_when_somebody_logs_in_there_again() {
    let app = TestApp::start_with(|config| {
        config.limits.log_ins_per_name_per_minute = 1;
        config.limits.log_ins_per_name_in_all_per_minute = 1;
    })
    .await;
    let own = format!("http://{}", app.address);
    let answer = sign_up_from(&app, &own).await;
    let device = answer.headers.get_all("set-cookie").iter().nth(1).expect("a second one");
    let device = device.to_str().expect("a text");
    for part in ["tidemark_device=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=31536000"] {
        assert!(device.contains(part), "{part} in {device}");
    }
    let device = device.split(';').next().expect("a pair").to_owned();
    app.send(app.request(Method::GET, "/api/v1/me").header("cookie", &device)).await.refused(401);
    let guess = json!({"name": "ann", "password": "guess guess"});
    for _ in 0..10 {
        app.post_as_nobody("/api/v1/sessions", guess.clone()).await.refused(401);
    }
    app.post_as_nobody("/api/v1/sessions", guess).await.refused(429);
    let log_in =
        app.request(Method::POST, "/api/v1/sessions").header("origin", &own).header("cookie", &device);
    app.send(log_in.body(CREDENTIALS)).await.ok(201);
}

#[tokio::test]
async fn a_program_gets_no_cookie() {
    let app = TestApp::start().await;
    let answer =
        app.post_as_nobody("/api/v1/accounts", json!({"name": "ann", "password": "correct horse"})).await;
    answer.ok(201);
    assert_eq!(answer.header("set-cookie"), "");
}

#[tokio::test]
async fn other_sites_change_nothing_and_open_no_socket() {
    let app = TestApp::start().await;
    let own = format!("http://{}", app.address);
    let answer = sign_up_from(&app, &own).await;
    let cookie = cookie(&answer);
    for origin in ["http://evil.example", "null", "https://127.0.0.1"] {
        let request = app
            .request(Method::DELETE, "/api/v1/sessions")
            .header("cookie", &cookie)
            .header("origin", origin);
        assert_eq!(app.send(request).await.refused(403), "foreign_origin", "{origin}");
        assert_eq!(sign_up_from(&app, origin).await.refused(403), "foreign_origin");
        let refused =
            Socket::dial(&app.address, "/ws", &[("cookie", &cookie), ("origin", origin)]).await.err();
        assert_eq!(refused, Some(403), "{origin}");
    }
    let missing = app.request(Method::DELETE, "/api/v1/sessions").header("cookie", &cookie);
    assert_eq!(app.send(missing).await.refused(403), "foreign_origin", "missing, with a cookie");
    assert_eq!(Socket::dial(&app.address, "/ws", &[("cookie", &cookie)]).await.err(), Some(403));
    let mut socket = Socket::dial(&app.address, "/ws", &[("cookie", &cookie), ("origin", &own)])
        .await
        .expect("our own page");
    socket.expect("welcome").await;
}

#[tokio::test]
async fn a_token_works_from_a_page_of_any_site_and_a_cookie_from_allowed_ones() {
    const ALLOWED: &str = "https://app.example.org";
    const ELSEWHERE: &str = "https://elsewhere.example";
    let app = TestApp::start_with(|config| config.server.allowed_origins = vec![ALLOWED.to_owned()]).await;
    let answer = sign_up_from(&app, ALLOWED).await;
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    let cookie = cookie(&answer);
    assert_eq!(sign_up_from(&app, ELSEWHERE).await.refused(403), "foreign_origin");

    for (origin, may_use_cookies) in [(ALLOWED, "true"), (ELSEWHERE, "")] {
        let asks = app
            .request(Method::OPTIONS, "/api/v1/messages")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type");
        // A browser's own question, which is no call.
        let asked = asks.send().await.expect("answered");
        let told = |name: &str| {
            let told = asked.headers().get(name).and_then(|value| value.to_str().ok());
            told.unwrap_or_default().to_owned()
        };
        assert_eq!(asked.status(), 200);
        assert_eq!(told("access-control-allow-origin"), origin);
        assert_eq!(told("access-control-allow-credentials"), may_use_cookies);
        assert!(told("access-control-allow-headers").contains("authorization"));
        let told = app.request(Method::GET, "/api/v1/me").bearer_auth(&token).header("origin", origin);
        let told = app.send(told).await;
        told.ok(200);
        assert_eq!(told.header("access-control-allow-origin"), origin, "else its scripts may not read it");
        let ticket = app.request(Method::POST, "/api/v1/sessions/current/ticket").bearer_auth(&token);
        let ticket = app.send(ticket.header("origin", origin)).await;
        let ticket = ticket.json()["ticket"].as_str().expect("a ticket").to_owned();
        let socket = Socket::dial(&app.address, &format!("/ws?ticket={ticket}"), &[("origin", origin)]).await;
        socket.expect("opened").expect("welcome").await;
    }
    let by_cookie = |origin| {
        app.request(Method::PUT, "/api/v1/settings/language")
            .header("cookie", &cookie)
            .header("origin", origin)
    };
    assert_eq!(app.send(by_cookie(ELSEWHERE)).await.refused(403), "foreign_origin");
    assert_ne!(app.send(by_cookie(ALLOWED)).await.status, 403);
    let page = app.request(Method::GET, "/metrics").header("origin", ELSEWHERE);
    assert_eq!(app.send(page).await.header("access-control-allow-origin"), "", "the API alone");
}

#[tokio::test]
async fn behind_https_the_cookie_is_secure_and_the_public_origin_alone_counts() {
    let app =
        TestApp::start_with(|config| config.server.public_url = "https://chat.example.org".into()).await;
    let direct = format!("http://{}", app.address);
    assert_eq!(sign_up_from(&app, &direct).await.refused(403), "foreign_origin");
    let answer = sign_up_from(&app, "https://chat.example.org").await;
    answer.ok(201);
    let line = answer.header("set-cookie");
    assert!(line.starts_with("__Host-tidemark_session=") && line.contains("; Secure"), "{line}");
    assert_eq!(answer.header("strict-transport-security"), "max-age=31536000");
    let token = answer.json()["token"].as_str().expect("a token").to_owned();
    let me = |name: &str| app.request(Method::GET, "/api/v1/me").header("cookie", format!("{name}={token}"));
    app.send(me("__Host-tidemark_session")).await.ok(200);
    // A neighbour under the same domain can set this one.
    app.send(me("tidemark_session")).await.refused(401);
    let out = app
        .request(Method::DELETE, "/api/v1/sessions/current")
        .header("cookie", cookie(&answer))
        .header("origin", "https://chat.example.org");
    let cleared: Vec<_> = app.send(out).await.headers.get_all("set-cookie").iter().cloned().collect();
    assert_eq!(cleared.len(), 2, "under both names: {cleared:?}");
}

#[tokio::test]
async fn without_https_browsers_are_not_asked_to_insist_on_it() {
    let app = TestApp::start().await;
    let answer = app.send(app.request(Method::GET, "/login")).await;
    assert_eq!(answer.header("strict-transport-security"), "");
}

#[tokio::test]
async fn forwarded_headers_are_believed_from_trusted_proxies_only() {
    let strict = |config: &mut tidemark::config::Config| config.limits.sign_ups_per_address_per_minute = 1;
    let sign_up = async |app: &TestApp, n: usize, client: &str| {
        let body = json!({"name": format!("user {n}"), "password": "correct horse"});
        let request =
            app.request(Method::POST, "/api/v1/accounts").header("x-forwarded-for", client).json(&body);
        app.send(request).await.status.as_u16()
    };
    let open = TestApp::start_with(strict).await;
    let statuses = async |app: &TestApp| {
        let mut statuses = Vec::new();
        for n in 0..12 {
            statuses.push(sign_up(app, n, &format!("198.51.100.{n}")).await);
        }
        statuses
    };
    let seen = statuses(&open).await;
    assert_eq!(
        (&seen[..2], &seen[2..]),
        (&[201; 2][..], &[429; 10][..]),
        "all of one address, whatever they claim"
    );
    let behind = TestApp::start_with(|config| {
        strict(config);
        config.server.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a range")];
    })
    .await;
    assert_eq!(statuses(&behind).await, [201; 12], "a different client each");
}

#[tokio::test]
async fn every_answer_is_strict_with_browsers() {
    let app = TestApp::start().await;
    for path in ["/", "/login", "/docs", "/nothing", "/api/v1/me", "/health", "/static/x/app.css"] {
        let answer = app.send(app.request(Method::GET, path)).await;
        let policy = answer.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{part} for {path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_ne!(answer.header("referrer-policy"), "", "{path}");
        assert!(answer.header("x-request-id").parse::<u64>().is_ok(), "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
    }
}

async fn page(app: &TestApp, who: Option<&Person>, path: &str) -> Answer {
    let request = app.request(Method::GET, path);
    let cookie = who.map(|who| format!("tidemark_session={}", who.token)).unwrap_or_default();
    app.send(request.header("cookie", cookie)).await
}

#[tokio::test]
async fn strangers_are_led_to_the_log_in_card_and_back() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for (path, to) in [("/", "/login"), ("/c/u:10001", "/login?next=/c/u:10001")] {
        let answer = page(&app, None, path).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, to));
        let shell = page(&app, Some(&ann), path).await;
        assert_eq!(shell.status, 200);
        assert!(
            shell.text.contains("data-uid=\"10001\"")
                && shell.header("content-type").starts_with("text/html")
        );
    }
    assert!(page(&app, None, "/login?next=/c/u:10001").await.text.contains("/c/u:10001"));
    for away in ["//evil.example", "https://evil.example", "/\\evil.example"] {
        let answer = page(&app, Some(&ann), &format!("/login?next={away}")).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"), "{away}");
        assert!(!page(&app, None, &format!("/login?next={away}")).await.text.contains("evil"));
    }
}

#[tokio::test]
async fn a_page_is_in_the_language_that_was_chosen_else_in_that_of_the_browser() {
    let app = TestApp::start().await;
    let login = async |cookie: &str, accepts: &str| {
        let request = app.request(Method::GET, "/login").header("accept-language", accepts);
        app.send(request.header("cookie", cookie)).await.text
    };
    assert!(login("", "de, zh-CN;q=0.8, en;q=0.5").await.contains("<html lang=\"zh-Hans\">"));
    assert!(login("", "de").await.contains("<html lang=\"en\">"));
    let own = format!("http://{}", app.address);
    let choose = async |language: &str, next: &str| {
        let form = format!("language={language}&next={next}");
        let request = app.request(Method::POST, "/language").header("origin", &own).body(form);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = app.send_unjudged(request).await;
        assert_eq!(answer.status, 303);
        (cookie(&answer), answer.header("location").to_owned())
    };
    let (chosen, next) = choose("zh", "/login?next=/c/u:10001").await;
    assert_eq!((chosen.as_str(), next.as_str()), ("tidemark_language=zh", "/login?next=/c/u:10001"));
    assert!(login(&chosen, "en").await.contains("<html lang=\"zh-Hans\">"));
    assert_eq!(choose("", "//evil.example").await, ("tidemark_language=".to_owned(), "/".to_owned()));
}

#[tokio::test]
async fn a_browser_whose_session_has_ended_is_told_so_and_forgets_it() {
    let app = TestApp::start().await;
    let request = |path| app.request(Method::GET, path).header("cookie", "tidemark_session=gone");
    for (path, to) in [("/", "/login?ended=yes"), ("/c/u:10001", "/login?ended=yes&next=/c/u:10001")] {
        let answer = app.send(request(path)).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (303, to));
    }
    let card = app.send(request("/login?ended=yes")).await;
    assert!(card.text.contains("You were logged out."), "{}", card.text);
    assert!(card.header("set-cookie").starts_with("tidemark_session=;"));
}

#[tokio::test]
async fn static_files_are_cached_by_content_and_nothing_else_is() {
    let app = TestApp::start().await;
    let login = page(&app, None, "/login").await;
    assert_eq!(login.header("cache-control"), "no-store");
    let start = login.text.find("/static/").expect("a file");
    let path: String = login.text[start..].chars().take_while(|c| *c != '"').collect();
    let file = page(&app, None, &path).await;
    assert_eq!(file.status, 200);
    assert!(file.header("cache-control").contains("immutable"), "{path}");
    assert_eq!(page(&app, None, "/static/0/app.css").await.header("cache-control"), "no-cache");
    for (takes, is) in [("br, gzip", true), ("GZIP;q=0.5", true), ("gzip;q=0, br", false), ("br", false)] {
        let request = app.request(Method::GET, &path).header("accept-encoding", takes);
        let answer = request.send().await.expect("an answer");
        assert_eq!(
            answer.headers().get("content-encoding").is_some_and(|coding| coding == "gzip"),
            is,
            "{takes}"
        );
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        let bytes = answer.bytes().await.expect("a body");
        assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), is, "{takes}");
    }
    assert_eq!(page(&app, None, "/static/0/../../Cargo.toml").await.status, 404);
    assert_eq!(page(&app, None, "/nothing").await.status, 404);
}

#[tokio::test]
async fn the_chat_is_compressed_and_a_page_with_a_strangers_words_is_not() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let session = format!("tidemark_session={}", ann.token);
    for (cookie, path, is) in [(session.as_str(), "/", true), ("", "/login?next=/c/u:10001", false)] {
        let request =
            app.request(Method::GET, path).header("accept-encoding", "gzip").header("cookie", cookie);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers().contains_key("content-encoding"), is, "{path}");
        assert_eq!(answer.bytes().await.expect("a body").starts_with(&[0x1f, 0x8b]), is, "{path}");
    }
}

#[tokio::test]
async fn unknown_calls_and_methods_are_refused_as_problems() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    assert_eq!(app.get(&ann, "/api/v1/nothing").await.refused(404), "not_found");
    assert_eq!(app.get(&ann, "/api/v1/messages").await.refused(405), "method_not_allowed");
    assert_eq!(app.get(&ann, "/ws").await.refused(426), "websocket_only");
    let document = app.get(&ann, "/api/v1/openapi.json").await.ok(200);
    assert_eq!(document["openapi"], "3.1.0");
}

#[tokio::test]
async fn where_no_tables_are_served_their_pages_say_how_to_switch_them_on() {
    let app = TestApp::start().await;
    for path in ["/tables", "/tables/sign-in", "/tables/orders", "/tables/orders/row?k1=a"] {
        let answer = app.send_unjudged(app.request(Method::GET, path)).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(
            answer.text.contains("<code>TIDEMARK_TABLE__LISTEN=127.0.0.1:8081</code>"),
            "{}",
            answer.text
        );
    }
    let form = "access_key_id=a&access_key_secret=b";
    let sign_in = app.request(Method::POST, "/tables/sign-in").body(form);
    let sign_in = sign_in.header("content-type", "application/x-www-form-urlencoded");
    assert_eq!(app.send_unjudged(sign_in).await.status, 404);
}
