//! The numbers of users, groups and invitations, and the secret of the latter's codes.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::files::fingerprint;
use super::storage::{Database, directory_of};
use super::{BootError, Storage};
use crate::config::Config;
use crate::seq::{Ids, StoredNumbers};
use crate::store::MessageStore;
use crate::store::sqlite::{Identity, private};

/// Under which key PostgreSQL keeps the secret of the codes of invitations.
const INVITES_SECRET: &str = "invites_secret";

/// On SQLite, where the segments of all other numbers are kept, and the secret of the codes of invitations.
pub(super) fn issuer_files(config: &Config) -> Result<(PathBuf, PathBuf), BootError> {
    let file = config.storage.file()?.with_file_name("ids.db");
    let secret = file.with_file_name("invites.key");
    Ok((file, secret))
}

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

/// The secret in this file, which is made if it is not there.
pub(super) fn secret_in(path: &Path) -> Result<String, BootError> {
    match fs::read_to_string(path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        Ok(_) => replace_secret(path).and_then(|()| secret_in(path)),
        Err(why) if why.kind() == ErrorKind::NotFound => replace_secret(path).and_then(|()| secret_in(path)),
        Err(why) => Err(BootError::File { path: path.to_owned(), why }),
    }
}

fn new_secret() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Writes a new secret into this file, whole or not at all.
fn replace_secret(path: &Path) -> Result<(), BootError> {
    let fresh = path.with_extension("key.new");
    let write = || {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(new_secret().as_bytes())?;
        file.sync_all()?;
        private::belong_to_directory(&fresh)?;
        fs::rename(&fresh, path)?;
        File::open(directory_of(path))?.sync_all()
    };
    write().map_err(|why| BootError::File { path: path.to_owned(), why })
}
