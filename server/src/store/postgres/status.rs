//! How an installation on PostgreSQL is, for operators. It is read, and nothing is made or migrated.

use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::{PgOpenError, life, options};
use crate::store::Facts;

/// Facts about the database to which `options` lead. `served`: the lock that each server shares, as SQL.
///
/// # Errors
/// When it does not answer.
pub async fn status(options: &PgConnectOptions, served: &str) -> Result<Facts, PgOpenError> {
    let place = options::place(options);
    let connected = PgConnection::connect_with(options).await;
    let mut connection = connected.map_err(|source| PgOpenError::Connect { place: place.clone(), source })?;
    let unreadable =
        |source: sqlx::Error| PgOpenError::Unreadable { place: place.clone(), source: source.into() };
    let mut facts = read(&mut connection, served).await.map_err(unreadable)?;
    _ = connection.close().await;
    facts.insert(0, ("database", place.clone().into()));
    Ok(facts)
}

async fn read(connection: &mut PgConnection, served: &str) -> sqlx::Result<Facts> {
    let text = async |connection: &mut PgConnection, sql: &'static str| {
        sqlx::query_scalar::<_, String>(sql).fetch_one(connection).await
    };
    let mut facts: Facts = vec![("postgresql", text(connection, "SHOW server_version").await?.into())];
    let is_used = "SELECT to_regclass('meta') IS NOT NULL";
    if !sqlx::query_scalar::<_, bool>(is_used).fetch_one(&mut *connection).await? {
        facts.push(("installed", false.into()));
        return Ok(facts);
    }
    let history: Option<String> = sqlx::query_scalar("SELECT value FROM meta WHERE key = $1")
        .bind(life::HISTORY)
        .fetch_optional(&mut *connection)
        .await?;
    facts.push(("history", history.into()));
    let owed: i64 =
        sqlx::query_scalar("SELECT (SELECT count(*) FROM pending) + (SELECT count(*) FROM outbox)")
            .fetch_one(&mut *connection)
            .await?;
    facts.push(("owed_messages", owed.into()));
    facts.push(("servers", servers(connection, served).await?));
    let is_standby = "SELECT pg_is_in_recovery()";
    let is_standby: bool = sqlx::query_scalar(is_standby).fetch_one(&mut *connection).await?;
    facts.push(("in_recovery", is_standby.into()));
    let timeline: i32 = sqlx::query_scalar("SELECT timeline_id FROM pg_control_checkpoint()")
        .fetch_one(&mut *connection)
        .await?;
    facts.push(("timeline", timeline.into()));
    facts.push((
        "synchronous_standby_names",
        text(connection, "SHOW synchronous_standby_names").await?.into(),
    ));
    facts.push(("standbys", standbys(connection).await?));
    facts.push(("data_checksums", text(connection, "SHOW data_checksums").await?.into()));
    Ok(facts)
}

/// Those that share the lock: what they call themselves, from where, and since when.
async fn servers(connection: &mut PgConnection, served: &str) -> sqlx::Result<Value> {
    let servers = format!(
        "SELECT a.application_name, coalesce(host(a.client_addr), 'a local socket'), to_char(a.backend_start, 'YYYY-MM-DD HH24:MI:SSOF')
         FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND l.granted AND l.mode = 'ShareLock' AND l.objsubid = 1
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
             AND (l.classid::bigint << 32) | l.objid::bigint = {served}
         ORDER BY a.backend_start"
    );
    let servers: Vec<(String, String, String)> =
        sqlx::query_as(AssertSqlSafe(servers)).fetch_all(connection).await?;
    let servers = servers.into_iter();
    Ok(servers
        .map(|(program, from, since)| json!({"program": program, "from": from, "connected": since}))
        .collect())
}

/// Name, state, how it takes part in commits, and how many bytes it is behind.
type StandbyRow = (Option<String>, Option<String>, Option<String>, Option<i64>);

/// Values that a role without `pg_monitor` may not see are null.
async fn standbys(connection: &mut PgConnection) -> sqlx::Result<Value> {
    let standbys: Vec<StandbyRow> = sqlx::query_as(
        "SELECT application_name, state, sync_state, pg_wal_lsn_diff(sent_lsn, replay_lsn)::bigint FROM pg_stat_replication ORDER BY 1",
    )
    .fetch_all(connection)
    .await?;
    let standbys = standbys.into_iter();
    Ok(standbys
        .map(|(name, state, sync, behind)| json!({"name": name, "state": state, "sync": sync, "bytes_behind": behind}))
        .collect())
}
