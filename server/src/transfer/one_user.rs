//! Brings one user's rows from an archive back into an inbox: behind what is there, under new ids, with what refers to
//! ids or to the user rewritten.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use seqsvr_core::Sequencer;
use serde_json::Value;

use super::check::Checked;
use super::error::TransferError;
use super::line::ArchiveLine;
use super::reader::ArchiveReader;
use super::user_files::UserFiles;
use crate::domain::{
    Body, ClientId, Clock, Content, Conversation, Entry, Kind, MessageId, Setting, Uid, name_key,
};
use crate::files::FilePlace;
use crate::store::archive::{InboxImport, Record};
use crate::store::{Directory, IdempotencyRecord, MessageStore, StoreError};

/// Rows that are numbered and stored at a time.
const CHUNK: usize = 1_000;

/// The installation that rows are appended to.
pub struct Installation<'a> {
    /// Takes the rows.
    pub append: &'a mut dyn InboxImport,
    /// Says which groups there are, and how far the user has read.
    pub store: &'a dyn MessageStore,
    /// Says which people there are.
    pub directory: &'a Directory,
    /// Numbers the rows; `None`: each gets the next id of its inbox.
    pub sequencer: Option<&'a dyn Sequencer>,
    /// Takes the bytes of files.
    pub files: &'a FilePlace,
    /// What time it is.
    pub clock: &'a Clock,
}

/// The outcome for a user's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Stored under new ids.
    pub stored: u64,
    /// There already: the same sender and `client_id`, or a read marker that leads no further.
    pub already: u64,
    /// Of conversations or people that do not exist here.
    pub left_out: u64,
    /// Files that came with them.
    pub files: u64,
    /// Files that they name, and that are neither here nor in the archive.
    pub files_gone: u64,
}

/// The user of the archive at `path` that `who` names: a uid, or a name without regard to case.
pub fn find_user(path: &Path, who: &str) -> Result<Option<Uid>, TransferError> {
    let mut reader = ArchiveReader::open(path)?;
    let (number, name) = (who.parse::<Uid>().ok(), name_key(who));
    let mut named = None;
    while let Some(line) = reader.next()? {
        let ArchiveLine::Record(record) = line else { continue };
        let Record::Account(account, ..) = *record else { break };
        if Some(account.uid) == number {
            return Ok(number);
        }
        if name_key(&account.name) == name {
            named = Some(account.uid);
        }
    }
    Ok(named)
}

/// Appends the rows of user `from` of the archive at `path` to the inbox of `into`.
///
/// Running it again after an interruption stores what is missing.
///
/// # Errors
/// When the file or storage fails, or no numbers can be had.
pub async fn import_one(
    installation: Installation<'_>,
    path: &Path,
    checked: &Checked,
    (from, into): (Uid, Uid),
    progress: &ProgressBar,
) -> Result<Appended, TransferError> {
    progress.set_message("importing");
    progress.set_length(checked.records);
    let mut reader = ArchiveReader::open(path)?;
    let Installation { directory, files, clock, .. } = installation;
    let mut files = UserFiles::of(directory, files, clock, (from, into));
    let mut mover = Mover::new(installation, from, into);
    let (mut rows, mut sent, mut seen) = (Vec::new(), Vec::new(), 0u64);
    loop {
        match reader.next()? {
            None => return Err(reader.cut_off()),
            Some(ArchiveLine::Header(_)) => {}
            Some(ArchiveLine::Footer(_)) => break,
            Some(ArchiveLine::Record(record)) => {
                seen += 1;
                if seen.is_multiple_of(1_024) {
                    progress.set_position(seen);
                }
                match *record {
                    Record::Row(entry) if entry.receiver == from => rows.push(entry),
                    Record::Sent(sender, client_id, record) if sender == from => {
                        sent.push((client_id, record));
                    }
                    record @ (Record::File(_) | Record::FilePart(_) | Record::FileGone(_)) => {
                        // All rows come before files.
                        mover.rows(std::mem::take(&mut rows), &mut files).await?;
                        files.take(record).await?;
                    }
                    _ => {}
                }
            }
        }
        if rows.len() == CHUNK {
            mover.rows(std::mem::take(&mut rows), &mut files).await?;
        }
        if sent.len() == CHUNK {
            // Rows come before: whatever a record names has its new id by now.
            mover.rows(std::mem::take(&mut rows), &mut files).await?;
            mover.sent(std::mem::take(&mut sent)).await?;
        }
    }
    mover.rows(rows, &mut files).await?;
    mover.sent(sent).await?;
    progress.set_position(seen);
    let (files, files_gone) = files.done();
    Ok(Appended { files, files_gone, ..mover.done })
}

struct Mover<'a> {
    to: Installation<'a>,
    from: Uid,
    into: Uid,
    /// The new id of each old one.
    ids: HashMap<MessageId, MessageId>,
    /// The same by conversation, in the order of the old ones.
    moved: HashMap<Conversation, Vec<(MessageId, MessageId)>>,
    /// Whether a conversation or a person exists here.
    known: HashMap<Conversation, bool>,
    /// How far the user has read here.
    markers: HashMap<Conversation, MessageId>,
    done: Appended,
}

impl<'a> Mover<'a> {
    fn new(to: Installation<'a>, from: Uid, into: Uid) -> Mover<'a> {
        let (ids, moved) = (HashMap::new(), HashMap::new());
        let (known, markers) = (HashMap::new(), HashMap::new());
        Mover { to, from, into, ids, moved, known, markers, done: Appended::default() }
    }

    async fn rows(&mut self, entries: Vec<Entry>, files: &mut UserFiles<'_>) -> Result<(), TransferError> {
        let mut fitting = Vec::with_capacity(entries.len());
        for entry in entries {
            let content = self.rewritten(&entry);
            let conversation = content.conversation(self.into);
            let stands = self.stands_otherwise(&content).await?;
            if !stands
                && self.exists(conversation).await?
                && self.exists(Conversation::User(content.sender)).await?
            {
                fitting.push((entry.message_id, content));
            } else {
                self.done.left_out += 1;
            }
        }
        let named: Vec<(Uid, ClientId)> =
            fitting.iter().filter_map(|(_, content)| Some((content.sender, content.client_id?))).collect();
        let Some(count) = u32::try_from(fitting.len()).ok().filter(|count| *count > 0) else { return Ok(()) };
        let latest = self.to.append.begin(self.into).await?;
        let mut there = self.to.append.copies(self.into, &named).await?.into_iter();
        let mut numbers = self.numbers(latest, count).await?;
        // Before the rows, as whoever sends them does; also of those that are there, which an interrupted run may have left without.
        files.adopt_uses(fitting.iter().map(|(_, content)| content)).await?;
        let mut rows = Vec::with_capacity(fitting.len());
        for (old, content) in fitting {
            let copy = content.client_id.and_then(|_| there.next().flatten());
            let Some(content) = self.with_marker(content).await? else { continue };
            let Some(content) = self.with_star(content) else {
                self.done.left_out += 1;
                continue;
            };
            let conversation = content.conversation(self.into);
            let message_id = match copy {
                Some(message_id) => {
                    self.done.already += 1;
                    message_id
                }
                None => {
                    let number = numbers.next().and_then(MessageId::new);
                    let message_id = number
                        .ok_or_else(|| StoreError::corrupt("the inbox has reached the end of its ids"))?;
                    self.done.stored += 1;
                    rows.push(Entry { receiver: self.into, message_id, content: Arc::new(content) });
                    message_id
                }
            };
            self.ids.insert(old, message_id);
            self.moved.entry(conversation).or_default().push((old, message_id));
        }
        Ok(self.to.append.append(rows, Vec::new()).await?)
    }

    /// Whether a row sets a state that counts no longer: this installation has a newer row for it, or the row is a friendship of another
    /// account. Archived conversations never count, since they name an old id.
    async fn stands_otherwise(&self, content: &Content) -> Result<bool, StoreError> {
        match content.kind {
            Kind::Friend if self.from != self.into => return Ok(true),
            Kind::Setting if matches!(content.body.setting(), Some(Setting::Archive | Setting::Hide)) => {
                return Ok(true);
            }
            Kind::Keep => {}
            // What a read marker says is compared by ids.
            kind if !kind.is_state() || kind == Kind::ReadMarker => return Ok(false),
            _ => {}
        }
        let Some(key) = content.compaction_key(self.into) else { return Ok(false) };
        Ok(self.to.store.newest(&[(self.into, key)]).await?.pop().flatten().is_some())
    }

    /// Numbers above `latest`: as many as may be needed. Those that are not are a gap (I11).
    async fn numbers(&self, latest: MessageId, count: u32) -> Result<RangeInclusive<u64>, TransferError> {
        let Some(sequencer) = self.to.sequencer else {
            return Ok(latest.get() + 1..=latest.get() + u64::from(count));
        };
        let uid = seqsvr_core::Uid::new(self.into.0);
        if sequencer.current(uid).await? < latest.get() {
            sequencer.advance(uid, latest.get()).await?;
        }
        let granted = sequencer.next(uid, count).await?;
        Ok(granted.first..=granted.last)
    }

    /// The content as the new owner sees it; a read marker still names the old id.
    fn rewritten(&self, entry: &Entry) -> Content {
        let own = |uid| if uid == self.from { self.into } else { uid };
        let sender = own(entry.content.sender);
        let conversation = match entry.conversation() {
            Conversation::User(uid) => Conversation::User(own(uid)),
            group => group,
        };
        let target = Content::target_of(self.into, sender, conversation);
        let body = self.renamed(&entry.content.body);
        Content { sender, target, body, ..Content::clone(&entry.content) }
    }

    /// A body with the new uid wherever bodies name the old one. The body of a program names nobody: all of it lies under its kind.
    fn renamed(&self, body: &Body) -> Body {
        const UIDS: [&str; 6] = [
            "/uid",
            "/by",
            "/of/sender",
            "/reply_to/of/sender",
            "/body/reply_to/of/sender",
            "/forwarded_from",
        ];
        const LISTS: [&str; 2] = ["/mentions/users", "/body/mentions/users"];
        let Ok(mut value) = serde_json::from_str::<Value>(body.as_json()) else { return body.clone() };
        let mut is_other = false;
        let mut rename = |uid: &mut Value| {
            if uid.as_u64() == Some(self.from.0.into()) {
                *uid = self.into.0.into();
                is_other = true;
            }
        };
        for place in UIDS {
            value.pointer_mut(place).into_iter().for_each(&mut rename);
        }
        for list in LISTS {
            value.pointer_mut(list).and_then(Value::as_array_mut).into_iter().flatten().for_each(&mut rename);
        }
        if is_other { Body::from_stored(value.to_string()) } else { body.clone() }
    }

    /// A read marker with the new id of the row that it names, or of the last one before it; `None` when it leads no
    /// further than the marker that is there. Other rows as they are.
    async fn with_marker(&mut self, content: Content) -> Result<Option<Content>, StoreError> {
        let (Kind::ReadMarker, Some(old)) = (content.kind, content.body.read_to()) else {
            return Ok(Some(content));
        };
        let conversation = content.target;
        let moved = self.moved.get(&conversation).map(Vec::as_slice).unwrap_or_default();
        let before = moved.partition_point(|(id, _)| *id <= old);
        // Copies that were there keep their places, so the new ids need not grow with the old ones.
        let new = moved[..before].iter().map(|(_, new)| *new).max().unwrap_or_default();
        let marker = match self.markers.get(&conversation) {
            Some(marker) => *marker,
            None => self.to.store.read_to(self.into, conversation).await?,
        };
        self.markers.insert(conversation, marker.max(new));
        if new <= marker {
            self.done.already += 1;
            return Ok(None);
        }
        Ok(Some(Content { body: Body::read_marker(new), ..content }))
    }

    /// A star with the new id of its message; `None` when that did not come along. Other rows as they are.
    fn with_star(&self, content: Content) -> Option<Content> {
        if content.kind != Kind::Star {
            return Some(content);
        }
        let mut value: Value = serde_json::from_str(content.body.as_json()).ok()?;
        let copy = value.get_mut("message_id")?;
        *copy = self.ids.get(&MessageId::new(copy.as_u64()?)?)?.get().into();
        Some(Content { body: Body::from_stored(value.to_string()), ..content })
    }

    async fn sent(&mut self, records: Vec<(ClientId, IdempotencyRecord)>) -> Result<(), TransferError> {
        let under_new_ids = records.into_iter().filter_map(|(client_id, sent)| {
            let message_id = *self.ids.get(&sent.message_id)?;
            Some((self.into, client_id, IdempotencyRecord { message_id, ..sent }))
        });
        Ok(self.to.append.append(Vec::new(), under_new_ids.collect()).await?)
    }

    async fn exists(&mut self, what: Conversation) -> Result<bool, StoreError> {
        if let Some(known) = self.known.get(&what) {
            return Ok(*known);
        }
        let exists = match what {
            Conversation::MOMENTS => true,
            Conversation::User(uid) => self.to.directory.account(uid).await?.is_some(),
            Conversation::Group(gid) => self.to.store.group(gid).await?.is_some(),
        };
        self.known.insert(what, exists);
        Ok(exists)
    }
}
