//! Hints over a real PostgreSQL, also where connections break.

use std::path::PathBuf;

use tidemark_test_support::servers::postgres;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use super::*;
use crate::domain::{MessageId, Uid};

/// The way to a schema that nobody else uses.
async fn fresh() -> PgConnectOptions {
    let schema = postgres::fresh_schema();
    let mut operator = PgConnection::connect(postgres::url()).await.expect("the server runs");
    let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
    sqlx::query(create).execute(&mut operator).await.expect("the name is new");
    let options: PgConnectOptions = postgres::url().parse().expect("a URL");
    options.options([("search_path", schema.clone())]).application_name(&schema)
}

async fn open(options: &PgConnectOptions, closing: &CancellationToken) -> PgHints {
    PgHints::open(options.clone(), closing, &TaskTracker::new()).await.expect("opened")
}

fn rows(uid: u32, id: u64) -> Hint {
    Hint::Rows(vec![(Uid(uid), MessageId::new(id).expect("small"))])
}

#[tokio::test]
async fn a_hint_reaches_every_other_server_and_not_its_own() {
    let (options, closing) = (fresh().await, CancellationToken::new());
    let one = open(&options, &closing).await;
    let (two, three) = (open(&options, &closing).await, open(&options, &closing).await);
    let elsewhere = open(&fresh().await, &closing).await;
    elsewhere.tell(rows(1, 1));
    one.tell(rows(7, 41));
    assert_eq!(two.hear().await, Heard::Hint(rows(7, 41)));
    assert_eq!(three.hear().await, Heard::Hint(rows(7, 41)));
    two.tell(Hint::SessionEnded([9; 32]));
    // Its own hint would have come before.
    assert_eq!(one.hear().await, Heard::Hint(Hint::SessionEnded([9; 32])));
    closing.cancel();
}

#[tokio::test]
async fn after_a_connection_that_was_cut_a_gap_is_told() {
    let (options, closing) = (fresh().await, CancellationToken::new());
    let (one, two) = (open(&options, &closing).await, open(&options, &closing).await);
    let mut operator = PgConnection::connect(postgres::url()).await.expect("connected");
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    let cut = sqlx::query(cut).bind(options.get_application_name().expect("set"));
    cut.execute(&mut operator).await.expect("cut");
    assert_eq!((one.hear().await, two.hear().await), (Heard::Gap, Heard::Gap));
    one.tell(rows(1, 2));
    assert_eq!(two.hear().await, Heard::Hint(rows(1, 2)));
    closing.cancel();
}

#[tokio::test]
async fn servers_and_an_import_keep_each_other_away() {
    let (options, elsewhere, closing) = (fresh().await, fresh().await, CancellationToken::new());
    let tasks = TaskTracker::new();
    let one = PgHints::open(options.clone(), &closing, &tasks).await.expect("opened");
    let served = keep_servers_away(&options).await.err().expect("refused").to_string();
    assert!(served.contains("servers or an import are using the database"), "{served}");
    keep_servers_away(&elsewhere).await.expect("another installation is not served");
    closing.cancel();
    tasks.close();
    tasks.wait().await;
    drop(one);

    let alone = keep_servers_away(&options).await.expect("the server is ending");
    let another = keep_servers_away(&options).await.err().expect("refused").to_string();
    assert!(another.contains("servers or an import are using the database"), "{another}");
    let refused = PgHints::open(options.clone(), &closing, &tasks).await.err().expect("refused");
    assert!(matches!(refused, HintsError::Filled), "{refused}");
    alone.end().await;
    open(&options, &CancellationToken::new()).await;
}

/// A way to the database whose connections fall silent, without being closed, when `age` changes; later ones pass.
async fn silenced_by_age(socket: PathBuf, age: watch::Receiver<u32>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let (socket, mut age) = (socket.clone(), age.clone());
            age.mark_unchanged();
            tokio::spawn(async move {
                let mut far = UnixStream::connect(&socket).await.expect("the server's socket");
                tokio::select! {
                    _ = copy_bidirectional(&mut near, &mut far) => {}
                    Ok(()) = age.changed() => std::future::pending().await,
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_half_open_connection_is_noticed_by_its_silence() {
    let (options, closing) = (fresh().await, CancellationToken::new());
    let socket = format!(".s.PGSQL.{}", options.get_port());
    let socket = options.get_socket().expect("a socket").join(socket);
    let (age, aged) = watch::channel(0);
    let port = silenced_by_age(socket, aged).await;
    let tcp: PgConnectOptions =
        format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable").parse().expect("a URL");
    let schema = options.get_application_name().expect("set").to_owned();
    let through = open(&tcp.options([("search_path", schema)]), &closing).await;
    let direct = open(&options, &closing).await;

    age.send_replace(1);
    direct.tell(rows(1, 2));
    assert_eq!(through.hear().await, Heard::Gap, "what was told into the silence is not heard");
    direct.tell(rows(1, 3));
    assert_eq!(through.hear().await, Heard::Hint(rows(1, 3)));
    closing.cancel();
}
