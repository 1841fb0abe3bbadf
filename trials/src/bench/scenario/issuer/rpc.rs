//! `issuer-rpc`: calls for 1 and for 1,000 numbers over gRPC, 8 connections with 8 in flight each, against a bare unary
//! call that answers the same messages.

use std::path::Path;
use std::process::Stdio;

use seqsvr_rpc::issuer_v1 as v1;
use seqsvr_rpc::issuer_v1::issuer_client::IssuerClient;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::transport::Channel;

use super::TAG;
use crate::bench::Context;
use crate::bench::baseline::grpc::BareGrpc;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::bench::scenario::cluster::lasting;
use crate::{Failure, Result, grpc};

pub(in crate::bench::scenario) struct IssuerRpc {
    ours: IssuerProcess,
    bare: BareGrpc,
    _folder: TempDir,
}

impl Measured for IssuerRpc {
    const NAME: &'static str = "issuer-rpc";
    const ABOUT: &'static str = "issuer: calls for 1 and 1,000 numbers over gRPC, 8 × 8 in flight";

    async fn prepare(context: &Context) -> Result<Self> {
        let folder = context.fresh()?;
        let ours = IssuerProcess::start(&context.sequence_binary()?, folder.path()).await?;
        let bare = BareGrpc::start(&std::env::current_exe()?).await?;
        Ok(IssuerRpc { ours, bare, _folder: folder })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let load = grpc::Load { uids: 1, in_flight: 8, lasting: lasting(context) };
        let mut samples = Vec::new();
        for count in [1, 1_000] {
            let call = move |channel, _| next(channel, count);
            let bare = grpc::unary(&self.bare.url(), 8, load, call).await?;
            let ours = grpc::unary(&self.ours.url, 8, load, call).await?;
            samples.push(
                Sample::new(format!("calls with count {count}, 8 × 8 in flight"), ours, "calls/s")
                    .against("bare tonic unary", bare)
                    .target(Target::RatioAtLeast(0.9)),
            );
        }
        Ok(samples)
    }
}

/// Numbers of a segment.
const STEP: u64 = 100_000_000;

/// `count` numbers.
async fn next(channel: Channel, count: u32) -> Result<()> {
    let request = v1::NextRequest { biz_tag: TAG.to_owned(), count, step: None };
    let reply = IssuerClient::new(channel).next(request).await?.into_inner();
    let numbers: u64 = reply.ranges.iter().map(|range| range.last - range.first + 1).sum();
    if numbers == u64::from(count) {
        return Ok(());
    }
    Err(Failure::new(format!("{numbers} numbers came, {count} were asked for")))
}

/// `seqsvr issuer` with one tag, whose segments last seconds at fifty million numbers a second. Dropping it kills it.
struct IssuerProcess {
    _process: Child,
    url: String,
}

impl IssuerProcess {
    async fn start(binary: &Path, folder: &Path) -> Result<IssuerProcess> {
        let config = folder.join("issuer.toml");
        let database = folder.join("issuer.db");
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[issuer]\ndatabase = \"sqlite:{}\"\n[issuer.tags.{TAG}]\nstep = {STEP}\n",
            database.display()
        );
        std::fs::write(&config, text)?;
        let mut process = Command::new(binary)
            .arg("issuer")
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("the issuer has no output"))?;
        let mut lines = BufReader::new(output).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(url) = line.strip_prefix("listening on ") {
                return Ok(IssuerProcess { _process: process, url: url.to_owned() });
            }
        }
        Err(Failure::new("seqsvr issuer ended before it listened"))
    }
}
