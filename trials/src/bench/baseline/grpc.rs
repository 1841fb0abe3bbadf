//! A bare tonic server that answers the streams of the sequence service with a fixed number: what the network, HTTP/2 and
//! protobuf cost before anybody has thought about a number.
//!
//! It runs in a process of its own, as an AllocSvr does.

use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use seqsvr_rpc::v1;
use seqsvr_rpc::v1::sequence_server::{Sequence, SequenceServer};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::Result;

/// Wide enough that flow control costs as little as it does the AllocSvr.
const WINDOW: u32 = 4 << 20;

/// Serves until the process is killed; prints the address first.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let server = Server::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .add_service(SequenceServer::new(BareSequence));
    Ok(server.serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))).await?)
}

struct BareSequence;

type GrpcAnswer<T> = std::result::Result<Response<T>, Status>;

/// As long as real answers are.
const NUMBER: u64 = 1_234_567;

fn next() -> v1::NextReply {
    let epoch = Some(v1::Epoch { term: 1, version: 1 });
    let granted = v1::Granted { first: NUMBER, last: NUMBER, epoch };
    v1::NextReply { outcome: Some(v1::next_reply::Outcome::Granted(granted)), table: None }
}

#[tonic::async_trait]
impl Sequence for BareSequence {
    async fn next(&self, _: Request<v1::NextRequest>) -> GrpcAnswer<v1::NextReply> {
        Err(Status::unimplemented("no measurement compares it"))
    }

    async fn next_each(&self, _: Request<v1::NextEachRequest>) -> GrpcAnswer<v1::NextEachReply> {
        Err(Status::unimplemented("no measurement compares it"))
    }

    async fn current(&self, _: Request<v1::CurrentRequest>) -> GrpcAnswer<v1::CurrentReply> {
        Err(Status::unimplemented("no measurement compares it"))
    }

    async fn advance(&self, _: Request<v1::AdvanceRequest>) -> GrpcAnswer<v1::AdvanceReply> {
        Err(Status::unimplemented("no measurement compares it"))
    }

    async fn route(&self, _: Request<v1::RouteRequest>) -> GrpcAnswer<v1::Table> {
        Err(Status::unimplemented("no measurement compares it"))
    }

    type StreamStream = Pin<Box<dyn Stream<Item = std::result::Result<v1::StreamReply, Status>> + Send>>;

    async fn stream(&self, request: Request<Streaming<v1::StreamRequest>>) -> GrpcAnswer<Self::StreamStream> {
        let answer = |asked: std::result::Result<v1::StreamRequest, Status>| {
            let answer = Some(v1::stream_reply::Answer::Next(next()));
            asked.map(|asked| v1::StreamReply { id: asked.id, answer })
        };
        Ok(Response::new(Box::pin(request.into_inner().map(answer))))
    }
}
