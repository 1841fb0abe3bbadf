//! The world before the floods: an inbox, five thousand friends, strangers, a table with rows, and people who have logged in before.

use std::path::PathBuf;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use tidemark_client::{Account, Http};

use super::Flood;
use super::raw::{Login, QUIET, Victim};
use crate::bench::scenario::table::TableWorld;
use crate::bench::{Context, tables};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::http::KeptAlive;
use crate::server::Server;
use crate::{Failure, Result, table_setup, users};

/// Rows of the one who floods, of 8,000 characters each: more than one answer holds.
const ROWS: usize = 700;

/// Friends of the one who floods, as many as there may be.
const FRIENDS: usize = 5_000;

/// People whom the one who floods puts into a group: more than may be strangers in a day.
const STRANGERS: usize = 100;

/// Rows of the table, and the bytes of the text of each.
const TABLE_ROWS: usize = 5_000;
const TABLE_ROW_BYTES: usize = 32;

/// Requests at a time.
const AT_ONCE: usize = 32;

/// The cost of passwords with which the crowd signs up.
const CHEAP: (&str, &str) = ("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "64");

/// The password of everybody who signs up.
const PASSWORD: &str = "a password for a trial";

/// The part of the answer to a log-in that is read.
#[derive(Deserialize)]
struct LoggedIn {
    device: String,
}

/// Where the process that floods finds whom to flood.
pub(super) fn victim_file(world: &TableWorld) -> PathBuf {
    world.data.path().join("victim.json")
}

pub(super) async fn prepare(context: &Context) -> Result<Flood> {
    let world = TableWorld::new(context, None).await?;
    let mut people = users::installed(&context.binary, world.data.path(), "flood", 4).await?.into_iter();
    let mut next = || people.next().ok_or_else(|| Failure::new("four accounts were asked for"));
    let (sender, receiver, flooder, person) = (next()?, next()?, next()?, next()?);
    let strangers = fill(context, &world, &flooder).await?;

    let server = Server::start_as_shipped_with(&world.settings, &world.binary, world.data.path()).await?;
    let credentials = &world.credentials;
    let unknown = |account: &Account| Login {
        name: account.name.clone(),
        password: PASSWORD.to_owned(),
        device: String::new(),
    };
    let mut victim = Victim {
        address: server.host().to_owned(),
        token: flooder.token.clone(),
        login: unknown(&flooder),
        person: unknown(&person),
        strangers,
        tables: world.address.clone(),
        key: [
            credentials.instance.clone(),
            credentials.access_key_id.clone(),
            credentials.access_key_secret.clone(),
        ],
        from: QUIET,
    };
    victim.login.device = device(&victim, &victim.login).await?;
    victim.person.device = device(&victim, &victim.person).await?;
    std::fs::write(victim_file(&world), serde_json::to_vec(&victim)?)?;
    Ok(Flood { server, sender: sender.token, receiver: receiver.uid, victim, world })
}

/// Logs somebody in, so that the device is known from then on.
async fn device(victim: &Victim, login: &Login) -> Result<String> {
    let body = format!(r#"{{"name":"{}","password":"{}"}}"#, login.name, login.password);
    let mut connection = KeptAlive::over(victim.dial().await?);
    let said = connection.answer(victim.post("/api/v1/sessions", &body).as_bytes()).await?;
    Ok(serde_json::from_slice::<LoggedIn>(said.body)?.device)
}

/// Fills the inbox, the list of friends and the table, with the limits lifted. Returns strangers.
async fn fill(context: &Context, world: &TableWorld, flooder: &Account) -> Result<Vec<u32>> {
    let mut settings = world.settings.clone();
    settings.push((CHEAP.0, CHEAP.1.to_owned()));
    let server = Server::start_with(&settings, 0, &world.binary, world.data.path()).await?;
    let http = server.http()?;
    let mut crowd = users::sign_up(&http, "crowd", context.scaled(FRIENDS) + STRANGERS).await?;
    let strangers = crowd.split_off(crowd.len() - STRANGERS);
    befriend(&http, flooder, &crowd).await?;
    let mut connection = ClientConnection::open(&http.socket_url(), &flooder.token).await?;
    let to = format!(r#"{{"user":{}}}"#, flooder.uid);
    for _ in 0..ROWS {
        connection.say(send_frame(client_id(), &to, &"x".repeat(8_000))).await?;
        connection.expect("sent").await?;
    }
    let mut connection = KeptAlive::open(&world.address).await?;
    let put = tables::put(&tables::first(0), TABLE_ROW_BYTES);
    let request = table_setup::request(&world.credentials, "PutRow", &put)?;
    for _ in 0..TABLE_ROWS {
        connection.ask(&request).await?;
    }
    server.stop().await?;
    Ok(strangers.into_iter().map(|stranger| stranger.uid).collect())
}

async fn befriend(http: &Http, who: &Account, friends: &[Account]) -> Result<()> {
    let own = http.with_token(&who.token);
    let each = friends.iter().map(|friend| {
        let (own, theirs) = (&own, http.with_token(&friend.token));
        async move {
            own.befriend(client_id(), friend.uid, true).await?;
            theirs.befriend(client_id(), who.uid, true).await?;
            Ok::<_, Failure>(())
        }
    });
    stream::iter(each).buffer_unordered(AT_ONCE).try_collect().await
}
