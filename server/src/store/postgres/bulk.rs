//! Many rows, records and accounts in one statement each, for imports: what a commit would have stored, under ids that
//! are given.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::effect::Effect;
use crate::domain::{
    ClientId, Conversation, Entry, Group, GroupId, MembershipEpoch, MessageId, Timestamp, Uid, name_key,
};
use crate::store::{Account, IdempotencyRecord, Pending, StoreError, group_settings};

/// The first part of the key of each of these users.
fn keys(uids: impl Iterator<Item = Uid>) -> Vec<String> {
    uids.map(|uid| uid.partition_key().as_str().to_owned()).collect()
}

fn numbers(uids: impl Iterator<Item = Uid>) -> Vec<i64> {
    uids.map(|uid| i64::from(uid.0)).collect()
}

/// Accounts, when they were made, and the latest ids of their inboxes where no row has them.
pub(super) async fn accounts(
    connection: &mut PgConnection,
    accounts: &[(Account, Timestamp, Option<MessageId>)],
) -> Result<(), StoreError> {
    let all = || accounts.iter().map(|(account, ..)| account);
    let uids = || all().map(|account| account.uid);
    let latest = |(.., latest): &(Account, Timestamp, Option<MessageId>)| {
        latest.unwrap_or_default().get().cast_signed()
    };
    sqlx::query(
        "WITH new AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bool[],
                 $8::bigint[], $9::bigint[])
                 AS new(partition_key, uid, name, name_key, password_hash, created_at, disabled, latest, deleted_at)),
             begun AS (INSERT INTO heads (partition_key, receiver, last_id) SELECT partition_key, uid, latest FROM new
                 ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = greatest(heads.last_id, excluded.last_id))
         INSERT INTO accounts (uid, name, name_key, password_hash, created_at, disabled, deleted_at)
         SELECT uid, name, name_key, password_hash, created_at, disabled, deleted_at FROM new",
    )
    .bind(keys(uids()))
    .bind(numbers(uids()))
    .bind(all().map(|account| account.name.as_str()).collect::<Vec<_>>())
    .bind(all().map(|account| name_key(&account.name)).collect::<Vec<_>>())
    .bind(all().map(|account| account.password_hash.as_str()).collect::<Vec<_>>())
    .bind(accounts.iter().map(|(_, created_at, _)| created_at.0).collect::<Vec<_>>())
    .bind(all().map(|account| account.disabled).collect::<Vec<_>>())
    .bind(accounts.iter().map(latest).collect::<Vec<_>>())
    .bind(all().map(|account| account.deleted_at.map(|at| at.0)).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Groups with everyone who ever was in them.
pub(super) async fn groups(connection: &mut PgConnection, groups: &[Group]) -> Result<(), StoreError> {
    let members = || groups.iter().flat_map(|group| group.members.iter().map(move |one| (group.gid, one)));
    sqlx::query(
        "WITH made AS (INSERT INTO groups (gid, version, settings)
             SELECT gid, version, settings::jsonb FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS new(gid, version, settings))
         INSERT INTO members (gid, uid, epoch, active, standing, since)
         SELECT * FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bool[], $8::smallint[], $9::bigint[])",
    )
    .bind(groups.iter().map(|group| group.gid.0.cast_signed()).collect::<Vec<_>>())
    .bind(groups.iter().map(|group| group.version.cast_signed()).collect::<Vec<_>>())
    .bind(groups.iter().map(|group| group_settings::text(&group.settings)).collect::<Vec<_>>())
    .bind(members().map(|(gid, _)| gid.0.cast_signed()).collect::<Vec<_>>())
    .bind(numbers(members().map(|(_, member)| member.uid)))
    .bind(members().map(|(_, member)| i64::from(member.epoch.0)).collect::<Vec<_>>())
    .bind(members().map(|(_, member)| member.is_active()).collect::<Vec<_>>())
    .bind(members().map(|(_, member)| i16::from(member.standing.code().0)).collect::<Vec<_>>())
    .bind(members().map(|(_, member)| member.standing.code().1).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// The last membership epochs that ended, of members who are there.
pub(super) async fn ended_epochs(
    connection: &mut PgConnection,
    ended: &[(GroupId, Uid, MembershipEpoch)],
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE members SET closed = greatest(closed, ended.epoch)
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS ended(gid, uid, epoch)
         WHERE members.gid = ended.gid AND members.uid = ended.uid",
    )
    .bind(ended.iter().map(|(gid, ..)| gid.0.cast_signed()).collect::<Vec<_>>())
    .bind(numbers(ended.iter().map(|(_, uid, _)| *uid)))
    .bind(ended.iter().map(|(.., epoch)| i64::from(epoch.0)).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Rows, with what they change about latest ids and the list of conversations.
pub(super) async fn rows(connection: &mut PgConnection, rows: &[Entry]) -> Result<(), StoreError> {
    let receivers = || rows.iter().map(|row| row.receiver);
    let contents = || rows.iter().map(|row| &row.content);
    let client = |row: &Entry| row.content.client_id.map(|client_id| client_id.0.as_bytes().to_vec());
    sqlx::query(
        "INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::smallint[], $5::text[], $6::bigint[], $7::bytea[],
             $8::text[], $9::bigint[])",
    )
    .bind(keys(receivers()))
    .bind(numbers(receivers()))
    .bind(rows.iter().map(|row| row.message_id.get().cast_signed()).collect::<Vec<_>>())
    .bind(contents().map(|content| i16::from(content.kind.code())).collect::<Vec<_>>())
    .bind(rows.iter().map(|row| row.conversation().to_string()).collect::<Vec<_>>())
    .bind(numbers(contents().map(|content| content.sender)))
    .bind(rows.iter().map(client).collect::<Vec<_>>())
    .bind(contents().map(|content| content.body.as_json()).collect::<Vec<_>>())
    .bind(contents().map(|content| content.sent_at.0).collect::<Vec<_>>())
    .execute(&mut *connection)
    .await?;
    self::effects(connection, rows).await?;
    let (mut latest, mut conversations) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let last: &mut MessageId = latest.entry(row.receiver).or_default();
        *last = row.message_id.max(*last);
        let read_to = row.content.read_to();
        if !row.content.is_shown() && read_to.is_none() {
            continue;
        }
        let line: &mut (MessageId, MessageId) =
            conversations.entry((row.receiver, row.conversation())).or_default();
        match read_to {
            Some(read_to) => line.1 = line.1.max(read_to),
            None => line.0 = line.0.max(row.message_id),
        }
    }
    self::latest(connection, &latest).await?;
    self::conversations(connection, &conversations).await
}

/// The effects of these rows on those before them, in their order.
async fn effects(connection: &mut PgConnection, rows: &[Entry]) -> Result<(), StoreError> {
    let effect =
        |row: &Entry| Some((row.receiver, row.message_id, Effect::json(&row.content, row.receiver)?));
    let effects: Vec<_> = rows.iter().filter_map(effect).collect();
    if effects.is_empty() {
        return Ok(());
    }
    let receivers = || effects.iter().map(|(receiver, ..)| *receiver);
    sqlx::query(
        "SELECT compact_entry(key, receiver, id, effect::jsonb)
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS row(key, receiver, id, effect)",
    )
    .bind(keys(receivers()))
    .bind(numbers(receivers()))
    .bind(effects.iter().map(|(_, id, _)| id.get().cast_signed()).collect::<Vec<_>>())
    .bind(effects.iter().map(|(.., effect)| effect.as_str()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

async fn latest(connection: &mut PgConnection, latest: &BTreeMap<Uid, MessageId>) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO heads (partition_key, receiver, last_id) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
         ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = greatest(heads.last_id, excluded.last_id)",
    )
    .bind(keys(latest.keys().copied()))
    .bind(numbers(latest.keys().copied()))
    .bind(latest.values().map(|latest| latest.get().cast_signed()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

async fn conversations(
    connection: &mut PgConnection,
    lines: &BTreeMap<(Uid, Conversation), (MessageId, MessageId)>,
) -> Result<(), StoreError> {
    let owners = || lines.keys().map(|(owner, _)| *owner);
    sqlx::query(
        "INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[])
         ON CONFLICT (partition_key, owner, conversation) DO UPDATE
             SET last_id = greatest(known.last_id, excluded.last_id), read_to = greatest(known.read_to, excluded.read_to)",
    )
    .bind(keys(owners()))
    .bind(numbers(owners()))
    .bind(lines.keys().map(|(_, name)| name.to_string()).collect::<Vec<_>>())
    .bind(lines.values().map(|(last, _)| last.get().cast_signed()).collect::<Vec<_>>())
    .bind(lines.values().map(|(_, read_to)| read_to.get().cast_signed()).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// Idempotency records; those that are there already stay.
pub(super) async fn sent(
    connection: &mut PgConnection,
    sent: &[(Uid, ClientId, IdempotencyRecord)],
) -> Result<(), StoreError> {
    let senders = || sent.iter().map(|(sender, ..)| *sender);
    let records = || sent.iter().map(|(.., record)| record);
    sqlx::query(
        "INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[])
         ON CONFLICT DO NOTHING",
    )
    .bind(keys(senders()))
    .bind(numbers(senders()))
    .bind(sent.iter().map(|(_, name, _)| name.0.as_bytes().to_vec()).collect::<Vec<_>>())
    .bind(records().map(|record| record.digest.0.to_vec()).collect::<Vec<_>>())
    .bind(records().map(|record| record.message_id.get().cast_signed()).collect::<Vec<_>>())
    .bind(records().map(|record| record.sent_at.0).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}

/// An acceptance with copies owed, and the membership epoch that it ends. Later ones get larger numbers.
pub(super) async fn pending(
    connection: &mut PgConnection,
    pending: &Pending,
    ends: Option<(Uid, MembershipEpoch)>,
) -> Result<(), StoreError> {
    let Pending { acceptance, content, owed } = pending;
    sqlx::query("SELECT setval('acceptances', greatest($1, (SELECT last_value FROM acceptances)))")
        .bind(acceptance.0.cast_signed())
        .execute(&mut *connection)
        .await?;
    let key = content.sender.partition_key().as_str().to_owned();
    sqlx::query(
        "INSERT INTO pending (partition_key, sender, acceptance, kind, target, client_id, body, sent_at, ends_uid, ends_epoch)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(&key)
    .bind(i64::from(content.sender.0))
    .bind(acceptance.0.cast_signed())
    .bind(i16::from(content.kind.code()))
    .bind(content.target.to_string())
    .bind(content.client_id.map(|client_id| client_id.0.as_bytes().to_vec()))
    .bind(content.body.as_json())
    .bind(content.sent_at.0)
    .bind(ends.map(|(uid, _)| i64::from(uid.0)))
    .bind(ends.map(|(_, epoch)| i64::from(epoch.0)))
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO outbox (partition_key, sender, acceptance, recipient, place, epoch)
         SELECT $1, $2, $3, owed.recipient, owed.place, owed.epoch
         FROM unnest($4::bigint[], $5::bigint[]) WITH ORDINALITY AS owed(recipient, epoch, place)",
    )
    .bind(&key)
    .bind(i64::from(content.sender.0))
    .bind(acceptance.0.cast_signed())
    .bind(numbers(owed.iter().map(|to| to.uid)))
    .bind(owed.iter().map(|to| i64::from(to.epoch.0)).collect::<Vec<_>>())
    .execute(connection)
    .await?;
    Ok(())
}
