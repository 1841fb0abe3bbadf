//! The answers to callers over gRPC and HTTP, in process: the whole way through the router, without a socket.

use axum::body::{Body, to_bytes};
use axum::http::{Request as HttpRequest, StatusCode};
use tonic::Request;
use tonic::codegen::Service;

use super::*;
use crate::SegmentOptions;
use seqsvr_rpc::issuer_v1::issuer_server::Issuer as _;
use seqsvr_rpc::security::{Listen, ListenConfig};

async fn issuer() -> Issuer {
    let builder = Issuer::builder().segment("order", SegmentOptions::default()).unwrap();
    builder.max_count("order", 100).unwrap().open().await.unwrap()
}

#[tokio::test]
async fn numbers_and_tags_over_grpc() {
    let service = IssuerService::new(issuer().await);
    let next =
        |tag: &str, count| Request::new(v1::NextRequest { biz_tag: tag.to_owned(), count, step: None });
    let reply = service.next(next("order", 3)).await.unwrap().into_inner();
    assert_eq!(reply.ranges, [v1::Range { first: 1, last: 3 }]);
    assert_eq!(reply.biz_tag, "order");
    for (tag, count, code) in [
        ("order", 0, Code::InvalidArgument),
        ("order", 101, Code::InvalidArgument),
        ("ORDER", 1, Code::InvalidArgument),
        ("invoice", 1, Code::NotFound),
    ] {
        assert_eq!(service.next(next(tag, count)).await.unwrap_err().code(), code);
    }
    let stepped = v1::NextRequest { biz_tag: "order".to_owned(), count: 1, step: Some(99) };
    let refused = service.next(Request::new(stepped)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("set 100 to 1000000, the tag's step_min and step_max"), "{refused}");
    let tags = service.tags(Request::new(v1::TagsRequest {})).await.unwrap().into_inner().tags;
    assert_eq!(
        (tags[0].biz_tag.as_str(), tags[0].issued, tags[0].strategy.as_str()),
        ("order", 3, "segment")
    );
    let decode = v1::DecodeRequest { biz_tag: "order".to_owned(), code: "17".to_owned() };
    assert_eq!(service.decode(Request::new(decode)).await.unwrap().into_inner().number, 17);
}

async fn ask(
    router: &axum::Router,
    method: &str,
    path: &str,
    token: &str,
    body: &str,
) -> (StatusCode, String) {
    let request =
        HttpRequest::builder().method(method).uri(path).header("authorization", format!("Bearer {token}"));
    let answer = router.clone().call(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn numbers_over_http_for_callers_with_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "correct-horse-battery").unwrap();
    let config = ListenConfig { token_file: Some(path), ..ListenConfig::default() };
    let listen = Listen::load(&config, "127.0.0.1:0".parse().unwrap(), false).unwrap();
    let router = pages::pages(issuer().await, listen.guard());
    let token = "correct-horse-battery";
    let (status, body) = ask(&router, "POST", "/v1/ids/order", token, r#"{"count": 2}"#).await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, r#"{"biz_tag":"order","ids":["1","2"]}"#));
    let (_, body) = ask(&router, "POST", "/v1/ids/order", token, "").await;
    assert_eq!(body, r#"{"biz_tag":"order","ids":["3"]}"#);
    let (_, body) = ask(&router, "GET", "/v1/ids/order/9", token, "").await;
    assert_eq!(body, r#"{"biz_tag":"order","id":"9","parts":{}}"#);
    for (path, token, body, status, code) in [
        ("/v1/ids/order", "wrong", "", StatusCode::UNAUTHORIZED, "unauthenticated"),
        ("/v1/ids/order", token, "{", StatusCode::BAD_REQUEST, "bad_body"),
        ("/v1/ids/order", token, "[3,null]", StatusCode::BAD_REQUEST, "bad_body"),
        ("/v1/ids/order", token, r#"{"step": 1000001}"#, StatusCode::BAD_REQUEST, "bad_step"),
        ("/v1/ids/order", token, r#"{"count": 0}"#, StatusCode::BAD_REQUEST, "bad_count"),
        ("/v1/ids/ORDER", token, "", StatusCode::BAD_REQUEST, "bad_tag"),
        ("/v1/ids/invoice", token, "", StatusCode::NOT_FOUND, "unknown_tag"),
    ] {
        let (answered, text) = ask(&router, "POST", path, token, body).await;
        assert_eq!(answered, status, "{text}");
        assert!(text.contains(&format!("\"code\":\"{code}\"")), "{text}");
    }
}

/// A page in a browser on this machine, or one whose name was made to lead here.
#[tokio::test]
async fn pages_of_browsers_use_no_numbers_up() {
    let listen = Listen::load(&ListenConfig::default(), "127.0.0.1:0".parse().unwrap(), false).unwrap();
    let router = pages::pages(issuer().await, listen.guard());
    let ask = async |headers: &[(&str, &str)]| {
        let request = HttpRequest::builder().method("POST").uri("/v1/ids/order");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        router.clone().call(request.body(Body::empty()).unwrap()).await.unwrap().status()
    };
    for host in ["127.0.0.1:7430", "[::1]:7430", "localhost:7430"] {
        assert_eq!(ask(&[("host", host)]).await, StatusCode::OK, "{host}");
        assert_eq!(ask(&[("host", host), ("origin", "http://evil.example")]).await, StatusCode::FORBIDDEN);
    }
    assert_eq!(ask(&[("host", "rebound.evil.example:7430")]).await, StatusCode::FORBIDDEN);
}
