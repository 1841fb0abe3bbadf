//! The numbers of users, groups and invitations.

use super::chance::{new_secret, replace_secret, secret_in};
use super::database::{Database, Storage};
use super::error::BootError;
use super::files::{fingerprint, issuer_files};
use crate::config::Config;
use crate::seq::{Ids, StoredNumbers};
use crate::store::MessageStore;
use crate::store::sqlite::Identity;

/// Under which key PostgreSQL keeps the secret of the codes of invitations.
const INVITES_SECRET: &str = "invites_secret";

/// The largest numbers that are stored.
async fn stored_numbers(storage: &Storage, messages: &dyn MessageStore) -> Result<StoredNumbers, BootError> {
    Ok(StoredNumbers {
        uid: storage.directory.largest_uid().await?.map_or(0, |uid| uid.0),
        gid: messages.largest_group_id().await?.0,
        invite: storage.directory.largest_invite().await?,
    })
}

/// The numbers of users, groups and invitations, with their segments beside the messages: in a file beside the database of SQLite, in
/// tables of PostgreSQL.
pub(super) async fn numbers_of_all_else(
    config: &Config,
    storage: &Storage,
    messages: &dyn MessageStore,
) -> Result<Ids, BootError> {
    issuer(config, storage, stored_numbers(storage, messages).await?).await
}

/// The same for a command that makes users alone, also beside a server.
pub async fn numbers_of_users(config: &Config, storage: &Storage) -> Result<Ids, BootError> {
    let uid = storage.directory.largest_uid().await?.map_or(0, |uid| uid.0);
    // A server that issues the other numbers raises them above the stored ones.
    issuer(config, storage, StoredNumbers { uid, ..StoredNumbers::default() }).await
}

async fn issuer(config: &Config, storage: &Storage, stored: StoredNumbers) -> Result<Ids, BootError> {
    match &storage.database {
        Database::Sqlite(_) => {
            let (file, secret) = issuer_files(config)?;
            Ok(Ids::open(&file, stored, &secret_in(&secret)?).await?)
        }
        Database::Postgres(db) => {
            let secret = db.agreed(INVITES_SECRET, &new_secret()).await?;
            Ok(Ids::shared(db.pool(), stored, &secret).await?)
        }
    }
}

/// After data came from a copy: lets the numbers of users, groups and invitations go on `ahead` beyond all that are known, ends all
/// invitations and makes a new secret for the codes of later ones. So nobody gets a number that was given after the copy was made,
/// and no link of that time leads anywhere. `known`: the largest numbers that are about to be stored.
///
/// # Errors
/// When a file cannot be written. Done again, it skips as many again.
pub async fn renew_numbers(
    config: &Config,
    storage: &Storage,
    known: StoredNumbers,
    ahead: u32,
) -> Result<(), BootError> {
    let invite = storage.directory.largest_invite().await?;
    let stored = StoredNumbers { invite: known.invite.max(invite), ..known };
    let db = match &storage.database {
        Database::Sqlite(db) => db,
        Database::Postgres(db) => {
            Ids::skip_shared(db.pool(), stored, u64::from(ahead)).await?;
            return Ok(db.put(INVITES_SECRET, &new_secret()).await?);
        }
    };
    let (file, secret) = issuer_files(config)?;
    Ids::skip(&file, stored, u64::from(ahead)).await?;
    storage.directory.end_all_invites().await?;
    // Interrupted anywhere between here and the end, no key is a wrong one.
    Identity::forget_key(db).await?;
    replace_secret(&secret)?;
    Ok(Identity::put_key(db, &fingerprint(&secret_in(&secret)?)).await?)
}

/// The same, with the numbers that are stored already.
pub async fn renew_stored_numbers(
    config: &Config,
    storage: &Storage,
    messages: &dyn MessageStore,
    ahead: u32,
) -> Result<(), BootError> {
    let known = stored_numbers(storage, messages).await?;
    renew_numbers(config, storage, known, ahead).await
}
