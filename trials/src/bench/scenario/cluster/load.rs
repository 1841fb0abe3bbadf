//! `load`: the ceilings of all 42,950 sections of the whole uid space, claimed in one sweep as a starting AllocSvr
//! does, from three StoreSvrs, from SQLite and from PostgreSQL; and from etcd where it is installed.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use seqsvr_core::store::message::Answer;
use seqsvr_core::store::postgres::PostgresSections;
use seqsvr_core::store::sqlite::SqliteSections;
use seqsvr_core::store::{Ceiling, Claimed, Layout, Owner, SectionStore};
use seqsvr_core::{Epoch, SectionId};
use seqsvr_rpc::v1::{StoreReply, store_reply};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::bench::Context;
use crate::bench::baseline::postgres::Postgres;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::cluster::{Cluster, Keeper, Shape, has_etcd};
use crate::{Failure, Result};

const SECTIONS: u32 = 42_950;
const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

/// How long a server that was just started may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(in crate::bench::scenario) struct Load {
    quorum: Arc<dyn SectionStore>,
    /// The other stores that have to be as quick, and what people call them.
    sql: [(&'static str, Arc<dyn SectionStore>); 2],
    /// Told beside them where it is built in.
    etcd: Option<Arc<dyn SectionStore>>,
    version: u64,
    _processes: (Cluster, Option<Cluster>, Postgres),
    _folders: [TempDir; 3],
}

impl Measured for Load {
    const NAME: &'static str = "load";
    const ABOUT: &'static str = "cluster: all 42,950 sections at the start of an AllocSvr";

    async fn prepare(context: &Context) -> Result<Self> {
        let folders = [context.fresh()?, context.fresh()?, context.fresh()?];
        let binary = context.sequence_binary()?;
        let cluster = Cluster::start(&binary, folders[0].path(), &Shape::new(0, 0)).await?;
        let of_etcd = Shape { keeper: Keeper::Etcd, ..Shape::new(0, 0) };
        let members = match has_etcd() {
            true => Some(Cluster::start(&binary, folders[1].path(), &of_etcd).await?),
            false => None,
        };
        let server = Postgres::start(folders[2].path())?;
        let sqlite = SqliteSections::open(&folders[0].path().join("sections.db")).await?;
        let load = Load {
            quorum: cluster.open_stores()?.sections,
            sql: [("SQLite", Arc::new(sqlite)), ("PostgreSQL", Arc::new(answering(&server).await?))],
            etcd: members.as_ref().map(Cluster::open_stores).transpose()?.map(|stores| stores.sections),
            version: 1,
            _processes: (cluster, members, server),
            _folders: folders,
        };
        let sql = load.sql.iter().map(|(_, store)| store);
        for store in sql.chain([&load.quorum]).chain(&load.etcd) {
            fill(&**store).await?;
        }
        Ok(load)
    }

    async fn measure(&mut self, _: &Context) -> Result<Vec<Sample>> {
        self.version += 1;
        let (took, claimed) = claimed_in(&*self.quorum, self.version).await?;
        let answer = Answer::Claimed { ceilings: claimed.ceilings, earlier: claimed.earlier };
        let reply = StoreReply { reply: Some(store_reply::Reply::from(&answer)) };
        let bytes = reply.encoded_len() as f64 / f64::from(1 << 20);
        let within = |store: &str, took| sample(store, took).target(Target::AtMost(50.0));
        let mut samples = vec![
            within("three stores", took),
            Sample::new("transferred from each", bytes, "MiB").target(Target::AtMost(2.0)),
        ];
        for (name, store) in &self.sql {
            let (took, _) = claimed_in(&**store, self.version).await?;
            samples.push(within(name, took));
        }
        if let Some(etcd) = &self.etcd {
            let (took, _) = claimed_in(&**etcd, self.version).await?;
            samples.push(sample("etcd", took));
        }
        Ok(samples)
    }
}

fn sample(store: &str, took: f64) -> Sample {
    Sample::new(format!("42,950 sections from {store}"), took, "ms")
}

/// The store in a server that may still be starting.
async fn answering(server: &Postgres) -> Result<PostgresSections> {
    let until = Instant::now() + PATIENCE;
    loop {
        match PostgresSections::open(&server.url(), "load").await {
            Ok(store) => return Ok(store),
            Err(error) if Instant::now() > until => return Err(error.into()),
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
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
