//! Access keys of tables: made and revoked by the operator, looked up for each request.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::sync::Cache;
use rand::RngExt as _;
use tokio::time::Instant;

use crate::domain::{Clock, Uid};
use crate::store::{AccessKey, Directory, StoreError};

/// How long a server uses a key that it has read. A revoked key may still work for this time.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Keys that a server remembers, and ids of which it remembers that they have none; what was used least is read again.
const REMEMBERED_KEYS: usize = 10_000;
/// The longest id of which it is remembered that it has no key: strangers choose what they ask for.
const LONGEST_MISS: usize = 64;
/// The prefix of a key's id, so that people recognise one.
const PREFIX: &str = "TIDE";

/// The permissions of a new access key.
#[derive(Clone, Debug)]
pub struct NewAccessKey {
    /// The instance that owns the tables: 3 to 16 letters, digits and hyphens.
    pub instance: String,
    /// Whether it may write.
    pub may_write: bool,
    /// The user as which it may read and write the inboxes of the chat; `None`: it may not.
    pub inbox: Option<Uid>,
}

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub enum AccessKeyError {
    /// The instance cannot be called so.
    #[error(
        "the instance cannot be named {0:?}; a name has 3 to 16 letters, digits and hyphens and begins with a letter"
    )]
    Instance(String),
    /// Nobody has the uid.
    #[error("there is no account with the uid {0}; `tidemark user list` shows them")]
    NoAccount(Uid),
    /// The database does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes an access key and keeps it. Its id and its secret are drawn.
///
/// # Errors
/// When the name of the instance or the uid is wrong, or the database does not answer.
pub async fn create_access_key(
    new: NewAccessKey,
    directory: &Directory,
    clock: &Clock,
) -> Result<AccessKey, AccessKeyError> {
    let NewAccessKey { instance, may_write, inbox } = new;
    if !is_instance(&instance) {
        return Err(AccessKeyError::Instance(instance));
    }
    if let Some(uid) = inbox
        && directory.account(uid).await?.is_none()
    {
        return Err(AccessKeyError::NoAccount(uid));
    }
    let id = format!("{PREFIX}{}", letters::<20>());
    let (secret, created_at) = (letters::<40>(), clock.now());
    let key = AccessKey { id, secret, instance, may_write, inbox, created_at, sign_outs: 0 };
    directory.put_access_key(key.clone()).await?;
    Ok(key)
}

/// Whether an instance can be called so.
fn is_instance(name: &str) -> bool {
    (3..=16).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Random letters and digits, nearly 6 bits each.
fn letters<const LENGTH: usize>() -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rng = rand::rng();
    (0..LENGTH).map(|_| char::from(ALPHABET[rng.random_range(0..ALPHABET.len())])).collect()
}

/// Access keys as a server sees them: what was looked up lately is remembered for a second, also that there is no such key. Ids without a
/// key have a place of their own, since strangers choose them: they push no key out.
pub struct RememberedKeys {
    directory: Arc<Directory>,
    remembered: Cache<String, (Instant, Arc<AccessKey>)>,
    missing: Cache<String, Instant>,
}

impl RememberedKeys {
    /// Those of `directory`.
    pub fn new(directory: Arc<Directory>) -> RememberedKeys {
        let (remembered, missing) = (Cache::new(REMEMBERED_KEYS), Cache::new(REMEMBERED_KEYS));
        RememberedKeys { directory, remembered, missing }
    }

    /// The key of this id. That of a user who is disabled or deleted is none.
    ///
    /// # Errors
    /// When the database is asked, and does not answer or holds something unreadable.
    pub async fn access_key(&self, id: &str) -> Result<Option<Arc<AccessKey>>, StoreError> {
        if let Some((read_at, key)) = self.remembered.get(id)
            && read_at.elapsed() < REMEMBERED
        {
            return Ok(Some(key));
        }
        if self.missing.get(id).is_some_and(|read_at| read_at.elapsed() < REMEMBERED) {
            return Ok(None);
        }
        // Before the look: what is revoked or made during it is not remembered for longer.
        let read_at = Instant::now();
        let mut found = self.directory.access_key(id).await?.map(Arc::new);
        if let Some(uid) = found.as_ref().and_then(|key| key.inbox)
            && self.directory.account(uid).await?.is_none_or(|account| account.disabled)
        {
            found = None;
        }
        match &found {
            Some(key) => self.remembered.insert(id.to_owned(), (read_at, Arc::clone(key))),
            None => {
                self.remembered.remove(id);
                if id.len() <= LONGEST_MISS {
                    self.missing.insert(id.to_owned(), read_at);
                }
            }
        }
        Ok(found)
    }

    /// Ends all sign-ins with the key of this id: here at once, elsewhere within a second.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sign_out(&self, id: &str) -> Result<(), StoreError> {
        self.directory.sign_out(id).await?;
        self.remembered.remove(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timestamp;
    use crate::store::NewAccount;

    fn new(instance: &str) -> NewAccessKey {
        NewAccessKey { instance: instance.to_owned(), may_write: true, inbox: None }
    }

    #[tokio::test]
    async fn a_key_is_made_for_an_instance_with_a_good_name() {
        let keys = Directory::in_memory();
        let make = async |new| create_access_key(new, &keys, &Clock::system()).await;
        let made = make(new("shop-2")).await.expect("made");
        assert_eq!(keys.access_key(&made.id).await, Ok(Some(made.clone())));
        assert!(made.id.starts_with("TIDE") && made.id.len() == 24, "{}", made.id);
        assert_eq!(made.secret.len(), 40);
        assert!(!format!("{made:?}").contains(&made.secret));
        let other = make(new("shop-2")).await.expect("made");
        assert!(other.id != made.id && other.secret != made.secret);
        for wrong in ["", "ab", "a-name-of-17-long", "1shop", "a b c", "sh/op", "späti"] {
            let refused = make(new(wrong)).await.expect_err(wrong).to_string();
            assert!(refused.contains("3 to 16 letters"), "{refused}");
        }
        let nobody = NewAccessKey { inbox: Some(Uid(7)), ..new("shop") };
        let refused = make(nobody).await.expect_err("nobody").to_string();
        assert!(refused.starts_with("there is no account with the uid 7"), "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_revoked_key_works_for_a_second_at_most() {
        let stored = Arc::new(Directory::in_memory());
        let made = create_access_key(new("shop"), &stored, &Clock::system()).await.expect("made");
        let keys = RememberedKeys::new(Arc::clone(&stored));
        assert_eq!(keys.access_key(&made.id).await, Ok(Some(Arc::new(made.clone()))));
        assert_eq!(stored.remove_access_key(&made.id).await, Ok(true));
        assert!(keys.access_key(&made.id).await.expect("asked").is_some(), "remembered");
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(keys.access_key(&made.id).await, Ok(None));
    }

    #[tokio::test(start_paused = true)]
    async fn the_key_of_a_user_who_is_disabled_opens_nothing() {
        let stored = Arc::new(Directory::in_memory());
        let (name, password_hash) = ("ann".to_owned(), "$argon2id$".to_owned());
        let account = NewAccount { name, password_hash, created_at: Timestamp(1) };
        assert!(stored.create_account(Uid(7), account, None).await.expect("made"));
        let inbox = NewAccessKey { inbox: Some(Uid(7)), ..new("shop") };
        let made = create_access_key(inbox, &stored, &Clock::system()).await.expect("made");
        let keys = RememberedKeys::new(Arc::clone(&stored));
        for (disabled, is_there) in [(false, true), (true, false), (false, true)] {
            stored.set_disabled(Uid(7), disabled).await.expect("set");
            assert_eq!(keys.access_key(&made.id).await.expect("asked").is_some(), is_there);
            tokio::time::advance(REMEMBERED).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_id_without_a_key_is_looked_up_once_a_second_at_most() {
        let stored = Arc::new(Directory::in_memory());
        let keys = RememberedKeys::new(Arc::clone(&stored));
        let made = create_access_key(new("shop"), &Directory::in_memory(), &Clock::system()).await;
        let made = made.expect("made");
        assert_eq!(keys.access_key(&made.id).await, Ok(None));
        stored.put_access_key(made.clone()).await.expect("kept");
        assert_eq!(keys.access_key(&made.id).await, Ok(None), "remembered");
        tokio::time::advance(REMEMBERED).await;
        assert_eq!(keys.access_key(&made.id).await, Ok(Some(Arc::new(made.clone()))));
        // One that is too long is looked up each time.
        let id = "x".repeat(LONGEST_MISS + 1);
        let key = AccessKey { id: id.clone(), ..made };
        assert_eq!(keys.access_key(&id).await, Ok(None));
        stored.put_access_key(key.clone()).await.expect("kept");
        assert_eq!(keys.access_key(&id).await, Ok(Some(Arc::new(key))));
    }
}
