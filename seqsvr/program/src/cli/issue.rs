//! `seqsvr issue` and `seqsvr tags`: numbers and tags of a running issuer, for people and scripts.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::ExitError;
use seqsvr_rpc::issuer_v1::issuer_client::IssuerClient;
use seqsvr_rpc::issuer_v1::{NextRequest, TagsRequest};
use seqsvr_rpc::security::{Call, CallConfig, Pass};
use seqsvr_rpc::text;

const ISSUE_EXAMPLES: &str = "\
Examples:
  seqsvr issue order                   one number
  seqsvr issue order --count 1000      one a line
  seqsvr issue order --step 50000      before a rush: the next segment holds 50,000
  seqsvr issue invite --json           {\"biz_tag\":\"invite\",\"ids\":[\"7\"],\"codes\":[\"x3Qp\"]}
  seqsvr issue order --server https://issuer.example:7430 --authority ca.pem --token-file token";

const TAGS_EXAMPLES: &str = "\
Examples:
  seqsvr tags
  seqsvr tags --json";

/// How to reach the issuer, and how to answer.
#[derive(Debug, Args)]
struct Reach {
    /// The address of the issuer
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7430")]
    server: String,
    /// The authority that signed its certificate (PEM file)
    #[arg(long, value_name = "FILE")]
    authority: Option<PathBuf>,
    /// The file with the token of the issuer
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `issue`.
#[derive(Debug, Args)]
#[command(after_help = ISSUE_EXAMPLES)]
pub(super) struct IssueArgs {
    /// The business tag
    tag: String,
    /// How many numbers
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: u32,
    /// How many numbers the issuer's next segment holds; by default the issuer follows the rate
    #[arg(long, value_name = "N")]
    step: Option<u64>,
    #[command(flatten)]
    reach: Reach,
}

/// The flags of `tags`.
#[derive(Debug, Args)]
#[command(after_help = TAGS_EXAMPLES)]
pub(super) struct TagsArgs {
    #[command(flatten)]
    reach: Reach,
}

impl Reach {
    async fn connect(&self) -> Result<IssuerClient<InterceptedService<Channel, Pass>>, ExitError> {
        let config = CallConfig {
            authority: self.authority.clone(),
            token_file: self.token_file.clone(),
            ..CallConfig::default()
        };
        let call = Call::load(&config).map_err(ExitError::usage)?;
        let channel = call.endpoint(&self.server).map_err(ExitError::usage)?.connect().await;
        let channel = channel.map_err(|error| {
            let (server, why) = (&self.server, text(&error));
            ExitError::failed(format!(
                "{server} cannot be reached ({why}); is `seqsvr issuer` running there?"
            ))
        })?;
        Ok(IssuerClient::with_interceptor(channel, call.pass()))
    }
}

/// Takes numbers and prints them: as codes where the tag has some.
pub(super) async fn issue(args: IssueArgs) -> Result<(), ExitError> {
    let request = NextRequest { biz_tag: args.tag, count: args.count, step: args.step };
    let reply = args.reach.connect().await?.next(request).await;
    let reply = reply.map_err(|status| ExitError::failed(status.message()))?.into_inner();
    let numbers = reply.ranges.iter().flat_map(|range| range.first..=range.last);
    let ids: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if args.reach.json {
        let mut answer = json!({ "biz_tag": reply.biz_tag, "ids": ids });
        if !reply.codes.is_empty() {
            answer["codes"] = json!(reply.codes);
        }
        println!("{answer}");
        return Ok(());
    }
    for id in if reply.codes.is_empty() { &ids } else { &reply.codes } {
        println!("{id}");
    }
    Ok(())
}

/// Prints every tag.
pub(super) async fn tags(args: TagsArgs) -> Result<(), ExitError> {
    let reply = args.reach.connect().await?.tags(TagsRequest {}).await;
    let tags = reply.map_err(|status| ExitError::failed(status.message()))?.into_inner().tags;
    if args.reach.json {
        let tag = |tag: &seqsvr_rpc::issuer_v1::Tag| {
            json!({
                "biz_tag": tag.biz_tag,
                "strategy": tag.strategy,
                "max_count": tag.max_count,
                "plugins": tag.plugins,
                "issued": tag.issued.to_string(),
                "left": tag.left.map(|left| left.to_string()),
                "lasts_seconds": tag.lasts_seconds,
                "trouble": tag.trouble,
            })
        };
        println!("{}", json!(tags.iter().map(tag).collect::<Vec<_>>()));
        return Ok(());
    }
    println!("{:<24} {:<10} {:>14} {:>14} {:>9}  TROUBLE", "TAG", "STRATEGY", "ISSUED", "LEFT", "MINUTES");
    for tag in tags {
        let or_dash = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let minutes = or_dash(tag.lasts_seconds.map(|seconds| seconds / 60));
        let (left, trouble) = (or_dash(tag.left), tag.trouble.unwrap_or_default());
        println!(
            "{:<24} {:<10} {:>14} {left:>14} {minutes:>9}  {trouble}",
            tag.biz_tag, tag.strategy, tag.issued
        );
    }
    Ok(())
}
