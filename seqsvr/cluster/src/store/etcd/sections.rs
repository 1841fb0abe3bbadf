//! Claims, raises and releases. All claims are one value, so each change of them excludes every other, and a raise that
//! names its revision is confirmed only while they stand as its owner saw them: a claim fences all raises at once.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{EtcdStore, keys, lock};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::backup::Backup;
use seqsvr_core::store::batches::batches;
use seqsvr_core::store::claims::Claims;
use seqsvr_core::store::{Ceiling, Claimed, Layout, Owner, RaiseError, Ranges, SectionStore, StoreError};
use seqsvr_etcd::v3::{RangeRequest, TxnRequest};
use seqsvr_etcd::{Cell, put, unchanged};

/// How many raises go into one transaction: etcd takes 128 operations by default.
const BATCH: usize = 100;

/// How many ceilings one answer carries: some 800 KB.
const PAGE: i64 = 20_000;

/// How often a change is tried anew because others changed the same meanwhile.
const TRIES: usize = 20;

/// The sections as last seen.
#[derive(Debug, Default)]
pub(super) struct SeenSections {
    hands: i64,
    claims: Claims,
    /// Revision and ceiling of each section that was read or raised.
    ceilings: HashMap<SectionId, (i64, u64)>,
}

/// The state by which raises are decided.
struct RaiseView {
    hands: i64,
    claims: Claims,
    /// Parallel to the raises.
    ceilings: Vec<(i64, u64)>,
}

#[async_trait]
impl SectionStore for EtcdStore {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        let (_, found) = self.members.look(&[self.keys.hands.clone().into_bytes()]).await?;
        Ok(claims_of(&found[0])?.newest())
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        for _ in 0..TRIES {
            let (_, found) =
                self.members.look(&[self.keys.hands.clone().into(), self.keys.layout.clone().into()]).await?;
            let (hands, stored) = (&found[0], &found[1]);
            if let Some(stored) = stored.value().map(keys::layout).transpose()?
                && stored != layout
            {
                return Err(StoreError::Layout { stored, configured: layout });
            }
            let mut claims = claims_of(hands)?;
            let changed = claims.accept(sections, owner)?;
            let mut success = vec![put(self.keys.hands.as_str(), keys::from_claims(&claims))];
            if stored.revision == 0 {
                success.push(put(self.keys.layout.as_str(), keys::from_layout(layout)));
            }
            let compare = vec![
                unchanged(self.keys.hands.as_str(), hands.revision),
                unchanged(self.keys.layout.as_str(), stored.revision),
            ];
            let transaction = TxnRequest { compare, success, failure: vec![] };
            if changed && !self.members.transact(&transaction).await?.succeeded {
                continue;
            }
            // Read after the claim stands: every ceiling that an earlier owner had confirmed is among these.
            let ceilings = self.ceilings(sections).await?;
            return Ok(Claimed { ceilings, floor: 0, earlier: claims.earlier(sections) });
        }
        Err(contended())
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut answers = Vec::with_capacity(raises.len());
        for batch in batches(raises, BATCH) {
            answers.extend(self.raise_batch(owner, batch).await);
        }
        answers
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            let (_, found) = self.members.look(&[self.keys.hands.clone().into_bytes()]).await?;
            let mut claims = claims_of(&found[0])?;
            if !claims.release(sections, owner) {
                return Ok(());
            }
            let success = vec![
                put(self.keys.hands.as_str(), keys::from_claims(&claims)),
                put(self.keys.released.as_str(), ""),
            ];
            let compare = vec![unchanged(self.keys.hands.as_str(), found[0].revision)];
            let transaction = TxnRequest { compare, success, failure: vec![] };
            if self.members.transact(&transaction).await?.succeeded {
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn backup(&self) -> Result<Backup, StoreError> {
        self.everything().await
    }
}

impl EtcdStore {
    async fn everything(&self) -> Result<Backup, StoreError> {
        let keys = &self.keys;
        let names = [&keys.layout, &keys.hands, &keys.term, &keys.table].map(|key| key.clone().into_bytes());
        let (_, found) = self.members.look(&names).await?;
        let [layout, hands, term, table] = &found[..] else { unreachable!("one answer for each key") };
        let backup = Backup {
            layout: layout.value().map(keys::layout).transpose()?,
            promised: term.value().map(keys::number).transpose()?.unwrap_or_default(),
            newest: claims_of(hands)?.newest(),
            table: table.value().map(keys::table).transpose()?.map(Arc::new),
            ..Backup::default()
        };
        // Read later: ceilings only grow.
        let all = [SectionId::new(0)..=SectionId::new(u32::MAX)];
        Ok(backup.with(self.ceilings(&all).await?))
    }

    async fn ceilings(&self, sections: &Ranges) -> Result<Vec<Ceiling>, StoreError> {
        let mut ceilings = Vec::new();
        for range in sections {
            let (mut from, behind) = (self.keys.ceiling(*range.start()), self.keys.behind(*range.end()));
            loop {
                let page = RangeRequest {
                    key: from,
                    range_end: behind.clone(),
                    limit: PAGE,
                    ..RangeRequest::default()
                };
                let page = self.members.range(&page).await?;
                for stored in &page.kvs {
                    let section = self.keys.section(&stored.key)?;
                    ceilings.push(Ceiling { section, max: keys::number(&stored.value)? });
                }
                match page.kvs.last() {
                    Some(last) if page.more => from = self.keys.behind(self.keys.section(&last.key)?),
                    _ => break,
                }
            }
        }
        Ok(ceilings)
    }

    /// One answer for each of at most [`BATCH`] raises, no two of which are for the same section.
    async fn raise_batch(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        let mut view = self.remembered(raises);
        let mut begun = false;
        for _ in 0..TRIES {
            let fresh = view.is_none();
            let now = match view.take() {
                Some(view) => view,
                None => match self.view(raises).await {
                    Ok(view) => view,
                    Err(error) => return all(raises, begun, &error),
                },
            };
            let answers: Vec<_> = raises
                .iter()
                .zip(&now.ceilings)
                .map(|(raise, &(_, stored))| {
                    now.claims.check(raise.section, owner)?;
                    if stored > raise.max { Err(RaiseError::Smaller { stored }) } else { Ok(raise.max) }
                })
                .collect();
            // A refusal is final, so it is never given by remembered state alone.
            if !fresh && answers.iter().any(Result::is_err) {
                continue;
            }
            let admitted =
                || raises.iter().zip(&now.ceilings).zip(&answers).filter(|(_, answer)| answer.is_ok());
            if admitted().next().is_none() {
                return answers;
            }
            let mut compare = vec![unchanged(self.keys.hands.as_str(), now.hands)];
            let mut success = Vec::new();
            for ((raise, (revision, _)), _) in admitted() {
                let key = self.keys.ceiling(raise.section);
                compare.push(unchanged(key.clone(), *revision));
                success.push(put(key, raise.max.to_be_bytes()));
            }
            begun = true;
            match self.members.transact(&TxnRequest { compare, success, failure: vec![] }).await {
                Ok(done) if done.succeeded => {
                    let revision = done.header.map_or(0, |header| header.revision);
                    let mut seen = lock(&self.seen);
                    for ((raise, _), _) in admitted() {
                        seen.ceilings.insert(raise.section, (revision, raise.max));
                    }
                    return answers;
                }
                Ok(_) => {}
                Err(error) => {
                    let unknown = |_| Err(RaiseError::Unknown(error.to_string()));
                    return answers.into_iter().map(|answer| answer.and_then(unknown)).collect();
                }
            }
        }
        all(raises, begun, &contended())
    }

    /// The remembered view, if it is of all these sections.
    fn remembered(&self, raises: &[Ceiling]) -> Option<RaiseView> {
        let seen = lock(&self.seen);
        let ceilings = raises.iter().map(|raise| seen.ceilings.get(&raise.section).copied());
        let ceilings = ceilings.collect::<Option<Vec<_>>>()?;
        Some(RaiseView { hands: seen.hands, claims: seen.claims.clone(), ceilings })
    }

    async fn view(&self, raises: &[Ceiling]) -> Result<RaiseView, StoreError> {
        let mut wanted = vec![self.keys.hands.clone().into_bytes()];
        wanted.extend(raises.iter().map(|raise| self.keys.ceiling(raise.section)));
        let (_, found) = self.members.look(&wanted).await?;
        let claims = claims_of(&found[0])?;
        let ceiling = |cell: &Cell| {
            Ok((cell.revision, cell.value().map(keys::number).transpose()?.unwrap_or_default()))
        };
        let ceilings = found[1..].iter().map(ceiling).collect::<Result<Vec<_>, StoreError>>()?;
        let mut seen = lock(&self.seen);
        // A slow answer may come after a newer one; the transaction would tell, but only by failing.
        if found[0].revision >= seen.hands {
            seen.hands = found[0].revision;
            seen.claims = claims.clone();
        }
        seen.ceilings.extend(raises.iter().map(|raise| raise.section).zip(ceilings.iter().copied()));
        Ok(RaiseView { hands: found[0].revision, claims, ceilings })
    }
}

/// The same failure for each raise: nothing was written before one was `begun`.
fn all(raises: &[Ceiling], begun: bool, error: &StoreError) -> Vec<Result<u64, RaiseError>> {
    let error = error.to_string();
    let error = if begun { RaiseError::Unknown(error) } else { RaiseError::Unavailable(error) };
    raises.iter().map(|_| Err(error.clone())).collect()
}

fn claims_of(hands: &Cell) -> Result<Claims, StoreError> {
    Ok(hands.value().map(keys::claims).transpose()?.unwrap_or_default())
}

fn contended() -> StoreError {
    StoreError::Unavailable(format!("etcd: others changed the same {TRIES} times in between"))
}
