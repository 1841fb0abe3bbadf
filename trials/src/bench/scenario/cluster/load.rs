//! `load`: the ceilings of all 42,950 sections of the whole uid space, claimed in one sweep as a starting AllocSvr does, from
//! three StoreSvrs and from SQLite.

use std::ops::RangeInclusive;
use std::time::Instant;

use prost::Message;
use seqsvr::replica::Answer;
use seqsvr::rpc::v1::{StoreReply, store_reply};
use seqsvr::store::sqlite::SqliteSections;
use seqsvr::store::{Ceiling, Claimed, Layout, Owner, SectionStore, Stores};
use seqsvr::{Epoch, SectionId};
use tempfile::TempDir;

use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Shape};
use crate::{Failure, Result};

const SECTIONS: u32 = 42_950;
const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

pub(in crate::bench::scenario) struct Load {
    _cluster: Cluster,
    quorum: Stores,
    sqlite: SqliteSections,
    version: u64,
    _folder: TempDir,
}

impl Measured for Load {
    const NAME: &'static str = "load";
    const ABOUT: &'static str = "cluster: all 42,950 sections at the start of an AllocSvr";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let cluster = Cluster::start(&context.sequence_binary()?, folder.path(), &Shape::new(0, 0)).await?;
        let quorum = cluster.open_stores()?;
        let sqlite = SqliteSections::open(&folder.path().join("sections.db")).await?;
        for store in [&*quorum.sections, &sqlite] {
            fill(store).await?;
        }
        Ok(Load { _cluster: cluster, quorum, sqlite, version: 1, _folder: folder })
    }

    async fn measure(&mut self, _: &Context) -> Result<Vec<Sample>> {
        self.version += 1;
        let (quorum, claimed) = claimed_in(&*self.quorum.sections, self.version).await?;
        let answer = Answer::Claimed { ceilings: claimed.ceilings, earlier: claimed.earlier };
        let reply = StoreReply { reply: Some(store_reply::Reply::from(&answer)) };
        let bytes = reply.encoded_len() as f64 / f64::from(1 << 20);
        let (sqlite, _) = claimed_in(&self.sqlite, self.version).await?;
        Ok(vec![
            Sample::new("42,950 sections from three stores", quorum, "ms").target(Target::AtMost(50.0)),
            Sample::new("transferred from each", bytes, "MiB").target(Target::AtMost(2.0)),
            Sample::new("42,950 sections from SQLite", sqlite, "ms").target(Target::AtMost(50.0)),
        ])
    }
}

fn all() -> RangeInclusive<SectionId> {
    SectionId::new(0)..=SectionId::new(SECTIONS - 1)
}

fn owner(version: u64) -> Owner {
    Owner { epoch: Epoch { term: 1, version }, incarnation: version }
}

/// Gives every section a ceiling of its own.
async fn fill(store: &dyn SectionStore) -> Result<()> {
    store.claim(&[all()], owner(1), LAYOUT).await?;
    let ceilings: Vec<Ceiling> = (0..SECTIONS)
        .map(|section| Ceiling {
            section: SectionId::new(section),
            max: 10_000_000 + u64::from(section) * 9_973,
        })
        .collect();
    for some in ceilings.chunks(1_000) {
        for raised in store.raise(owner(1), some).await {
            raised?;
        }
    }
    Ok(())
}

/// Milliseconds, and what was found.
async fn claimed_in(store: &dyn SectionStore, version: u64) -> Result<(f64, Claimed)> {
    let began = Instant::now();
    let claimed = store.claim(&[all()], owner(version), LAYOUT).await?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    if claimed.ceilings.len() != SECTIONS as usize {
        return Err(Failure::new(format!("{} sections were found", claimed.ceilings.len())));
    }
    Ok((took, claimed))
}
