//! The same for tables: rows that were acknowledged, their numbers, and what readers followed.

use std::path::{Path, PathBuf};

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tidemark_test_support::ports::free_port;
use tidemark_test_support::until::until;
use tidemark_trials::chaos::{AccessKey, TableLedger, TableLoad};

use super::{Disk, End, Server};

const ROWS: usize = 600;

/// A load over a disk that may lose power.
struct Rows {
    disk: Disk,
    address: String,
    load: TableLoad,
}

impl Rows {
    async fn begin() -> (Rows, Server) {
        let (disk, address) = (Disk::new(), format!("127.0.0.1:{}", free_port()));
        // Made before the shim watches: it follows one process.
        let program = Path::new(env!("CARGO_BIN_EXE_tidemark"));
        let key = AccessKey::make(program, &disk.path("data"), &[]).await.expect("made");
        let server = disk.serve_with(&[listen(&address)]).await;
        let mut random = StdRng::seed_from_u64(20_261_123);
        let load = TableLoad::begin(&key, std::slice::from_ref(&address), &mut random).await.expect("begun");
        (Rows { disk, address, load }, server)
    }

    async fn acknowledged(&self, rows: usize) {
        until("rows are acknowledged", async || self.load.acknowledged() >= rows).await;
    }

    /// The power goes. Returns what was told before, and is there afterwards.
    async fn lose_power(mut self) -> TableLedger {
        self.disk.lose_power();
        let server = Server::start(&self.disk.path("data"), &[listen(&self.address)]).await;
        let written = self.load.written().await.expect("written");
        let ledger = self.load.read(written).await.expect("read");
        server.kill().await;
        ledger
    }
}

fn listen(address: &str) -> (&'static str, PathBuf) {
    ("TIDEMARK_TABLE__LISTEN", address.into())
}

async fn every_row_survives(end: End) {
    let (rows, server) = Rows::begin().await;
    rows.acknowledged(ROWS).await;
    match end {
        End::None => server.kill().await,
        End::Stopped => {
            server.terminate().await;
            server.ended().await;
        }
        End::Stopping => {
            server.terminate().await;
            // New connections are refused from now on, and accepted requests are answered.
            until("it takes no more", async || tokio::net::TcpStream::connect(&rows.address).await.is_err())
                .await;
            server.kill().await;
        }
    }
    rows.load.stop_writing();
    let ledger = rows.lose_power().await;
    let broken = ledger.broken_promises();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[tokio::test]
async fn rows_that_were_acknowledged_survive_a_power_cut() {
    every_row_survives(End::None).await;
}

#[tokio::test]
async fn rows_that_were_moved_by_a_stop_survive_a_power_cut_after_it() {
    every_row_survives(End::Stopped).await;
}

#[tokio::test]
async fn a_power_cut_in_the_middle_of_a_stop_loses_no_row() {
    every_row_survives(End::Stopping).await;
}

#[tokio::test]
async fn rows_on_a_disk_that_only_pretends_to_sync_are_missed() {
    let (rows, server) = Rows::begin().await;
    rows.acknowledged(200).await;
    let in_earnest = rows.load.acknowledged();
    rows.disk.begin_to_lie();
    rows.acknowledged(in_earnest + 400).await;
    server.kill().await;
    rows.load.stop_writing();
    let ledger = rows.lose_power().await;
    assert_eq!(ledger.missing(in_earnest), 0, "what was synced in earnest is there");
    assert_ne!(ledger.missing(usize::MAX), 0, "what was never written has survived");
}
