//! The number issuer for callers in other processes: the gRPC service, and the same over HTTP and JSON in `pages`. Only
//! translates; the issuer decides.

pub mod pages;
#[cfg(test)]
mod tests;

use tonic::{Code, Request, Response, Status};

use crate::{IssueError, Issuer, NextError, TagInfo};

pub use seqsvr_rpc::issuer_v1 as v1;

/// The service `issuer.v1.Issuer` over one issuer.
#[derive(Clone)]
pub struct IssuerService {
    issuer: Issuer,
}

impl IssuerService {
    /// Answers with the numbers of `issuer`.
    pub fn new(issuer: Issuer) -> Self {
        Self { issuer }
    }
}

/// The gRPC status of an error.
fn status(error: &NextError) -> Status {
    let code = match error {
        NextError::BadTag(_)
        | NextError::BadCount { .. }
        | NextError::BadStep { .. }
        | NextError::BadCode { .. } => Code::InvalidArgument,
        NextError::UnknownTag { .. } => Code::NotFound,
        NextError::Vetoed { .. } => Code::PermissionDenied,
        NextError::Issue(IssueError::Retryable(_)) => Code::Unavailable,
        NextError::Issue(IssueError::Final(_)) => Code::FailedPrecondition,
    };
    Status::new(code, error.to_string())
}

#[tonic::async_trait]
impl v1::issuer_server::Issuer for IssuerService {
    async fn next(&self, request: Request<v1::NextRequest>) -> Result<Response<v1::NextReply>, Status> {
        let v1::NextRequest { biz_tag, count, step } = request.into_inner();
        let issued = match step {
            Some(step) => self.issuer.next_with_step(&biz_tag, count, step).await,
            None => self.issuer.next(&biz_tag, count).await,
        };
        let issued = issued.map_err(|error| status(&error))?;
        let range = |range: &crate::Range| v1::Range { first: range.first, last: range.last };
        Ok(Response::new(v1::NextReply {
            ranges: issued.ranges().iter().map(range).collect(),
            codes: issued.codes().to_vec(),
            biz_tag: issued.instead().map_or(biz_tag, ToString::to_string),
        }))
    }

    async fn decode(&self, request: Request<v1::DecodeRequest>) -> Result<Response<v1::DecodeReply>, Status> {
        let v1::DecodeRequest { biz_tag, code } = request.into_inner();
        let decoded = self.issuer.decode(&biz_tag, &code).map_err(|error| status(&error))?;
        let parts = decoded.parts.into_iter();
        let parts = parts.map(|part| v1::Part { name: part.name, value: part.value }).collect();
        Ok(Response::new(v1::DecodeReply { number: decoded.number, parts }))
    }

    async fn tags(&self, _: Request<v1::TagsRequest>) -> Result<Response<v1::TagsReply>, Status> {
        let tags = self.issuer.tags().into_iter().map(tag).collect();
        Ok(Response::new(v1::TagsReply { tags }))
    }
}

fn tag(info: TagInfo) -> v1::Tag {
    v1::Tag {
        biz_tag: info.tag.to_string(),
        strategy: info.strategy,
        max_count: info.max_count,
        plugins: info.plugins,
        issued: info.status.issued,
        left: info.status.left,
        lasts_seconds: info.status.lasts.map(|lasts| lasts.as_secs()),
        trouble: info.status.trouble,
    }
}
