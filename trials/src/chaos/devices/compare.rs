//! Whether all devices show the same in the end, and both people agree.

use std::time::Duration;

use tidemark_client::{Account, Conversation, Entry, Http, Kind};
use tokio::time::{Instant, sleep};

use super::super::person::{everything, fetch};
use super::super::view::{FEED, InboxView, ShownState, differences};
use super::{Device, PATIENCE};
use crate::{Failure, Result};

/// Compares until everything agrees; answers how many rows there are.
pub(super) async fn compare(https: &[Http; 2], accounts: &[Account; 2], devices: &[Device]) -> Result<usize> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut broken = Vec::new();
        let mut rows = 0;
        let mut views = Vec::new();
        for (http, account) in https.iter().zip(accounts) {
            let own: Vec<&Device> = devices.iter().filter(|device| device.uid == account.uid).collect();
            let (view, count) = one_person(http, account.uid, &own, &mut broken).await?;
            views.push(view);
            rows += count;
        }
        agree((accounts[0].uid, &views[0]), (accounts[1].uid, &views[1]), &mut broken);
        agree((accounts[1].uid, &views[1]), (accounts[0].uid, &views[0]), &mut broken);
        if broken.is_empty() {
            return Ok(rows);
        }
        if Instant::now() > deadline {
            return Err(Failure::of(&broken, "differences"));
        }
        // Rows that are owed to an inbox may still be on their way.
        sleep(Duration::from_millis(100)).await;
    }
}

/// All devices of one person, a new one, and the server's own lists.
async fn one_person(
    http: &Http,
    uid: u32,
    devices: &[&Device],
    broken: &mut Vec<String>,
) -> Result<(InboxView, usize)> {
    let stored = everything(http).await?;
    let last = stored.last().map_or(0, |row| row.message_id);
    // Up to there all has expired that does; a device may still have it.
    let first = if devices[0].rows_expire { first_whole(&stored) } else { 0 };
    let whole = living(&stored, first);
    let view = InboxView::of(uid, &whole);
    let fetched = fetch(http, last).await?;
    if fetched != stored {
        broken.push(format!("{uid}: a new device has {} rows of {}", fetched.len(), stored.len()));
    }
    if !view.twice.is_empty() {
        broken.push(format!("{uid}: there twice: {:?}", view.twice));
    }
    for (n, device) in devices.iter().enumerate() {
        let rows = living(&device.store.rows(), first);
        let which = format!("{uid}, device {n}");
        differences(&which, &rows, &whole, (&InboxView::of(uid, &rows), &view), broken);
        for (key, sent) in device.anew.iter().filter(|(_, sent)| sent.message_id >= first) {
            broken.push(format!("{uid}: {key:?} got {sent:?} and then another answer"));
        }
        for (key, id) in device.acknowledged().filter(|(_, id)| *id >= first) {
            let line = view.lines.get(&key).map(|line| line.message_id);
            if line != Some(id) {
                broken.push(format!("{uid}: {key:?} was acknowledged as {id}, and is {line:?}"));
            }
        }
    }
    let unread = view.unread(uid);
    for summary in http.conversations().await? {
        let counted = unread.get(&summary.id).copied().unwrap_or_default();
        let read_to = view.read_to.get(&summary.id).copied().unwrap_or_default();
        if (summary.unread, summary.read_to) != (counted, read_to) {
            let (id, listed) = (summary.id, (summary.unread, summary.read_to));
            broken.push(format!("{uid}: {id} is listed with {listed:?}, rows say {:?}", (counted, read_to)));
        }
    }
    Ok((view, stored.len()))
}

/// The first row that has not expired, of those that do.
fn first_whole(rows: &[Entry]) -> u64 {
    let is_whole = |row: &&Entry| !is_lasting(row) && row.client_id.is_some();
    rows.iter().find(is_whole).map_or(u64::MAX, |row| row.message_id)
}

/// The rows from `first` on, and those that stay however old they are.
fn living(rows: &[Entry], first: u64) -> Vec<Entry> {
    rows.iter().filter(|row| row.message_id >= first || is_lasting(row)).cloned().collect()
}

fn is_lasting(row: &Entry) -> bool {
    use Kind::{Friend, Keep, Membership, ReadMarker, Seen, Setting};
    matches!(row.kind, ReadMarker | Membership | Setting | Friend | Seen | Keep)
}

/// Compares the lines that `own` has and `other` should have, too.
fn agree((uid, own): (u32, &InboxView), (other_uid, other): (u32, &InboxView), broken: &mut Vec<String>) {
    for (key, line) in &own.lines {
        let theirs = other.lines.get(key);
        let is_common = line.conversation == Conversation::User(other_uid);
        let Some(theirs) = theirs else {
            if is_common {
                broken.push(format!("{other_uid} lacks {key:?}, which {uid} has"));
            }
            continue;
        };
        if !is_common && line.conversation != FEED {
            continue;
        }
        // Each deletes a message for oneself; a moment is deleted for both.
        let is_own_affair =
            is_common && (line.state == ShownState::Deleted || theirs.state == ShownState::Deleted);
        let mut likes = (line.likes.clone(), theirs.likes.clone());
        // Of its author's own likes those are told who are friends just then.
        for likes in [&mut likes.0, &mut likes.1] {
            likes.remove(&key.0);
        }
        let same = line.state == theirs.state && line.reactions == theirs.reactions && likes.0 == likes.1;
        if !is_own_affair && !same {
            broken.push(format!("{uid} has {line:?}, and {other_uid} {theirs:?}"));
        }
    }
    let mine = own.friends.get(&other_uid).copied().unwrap_or_default().mine;
    let theirs = other.friends.get(&uid).copied().unwrap_or_default().theirs;
    if mine != theirs {
        broken.push(format!("{uid} wants to be a friend: {mine}; {other_uid} was told: {theirs}"));
    }
}
