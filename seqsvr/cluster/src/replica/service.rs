//! The gRPC face of a replica: one call for all questions. Callers that mean another cluster or Set are refused.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::identity::Identity;
use super::writer::Asker;
use seqsvr_core::ids::Epoch;
use seqsvr_core::store::Address;
use seqsvr_core::store::message::{Answer, Description, Question};
use seqsvr_rpc::v1;
use v1::store_reply::Reply;

pub(super) struct Service {
    pub(super) identity: Arc<Identity>,
    /// For the life of the Set.
    pub(super) section_size: u32,
    pub(super) asker: Asker,
}

#[tonic::async_trait]
impl v1::store_server::Store for Service {
    async fn call(&self, request: Request<v1::StoreRequest>) -> Result<Response<v1::StoreReply>, Status> {
        let v1::StoreRequest { cluster, set, address, request } = request.into_inner();
        let to = address.map(Address::from);
        let refused = |why: String| Ok(Response::new(v1::StoreReply { reply: Some(Reply::Refused(why)) }));
        let mine = &self.identity;
        if (&cluster, set) != (&mine.cluster, mine.set) {
            return refused(format!(
                "the caller wants Set {set} of cluster {cluster}, but this is {mine}; correct its cluster, Set or replicas"
            ));
        }
        let request = request.ok_or_else(|| Status::invalid_argument("the request is empty"))?;
        let known = match &request {
            v1::store_request::Request::Read(read) => read.known.map(Epoch::from),
            _ => None,
        };
        let question =
            Question::try_from(request).map_err(|error| Status::invalid_argument(error.to_string()))?;
        if let Question::Write(table) = &question
            && table.set != set
        {
            return Err(Status::invalid_argument(format!("the table is of Set {}, not {set}", table.set)));
        }
        if let Question::Write(table) = &question
            && table.section_size != self.section_size
        {
            return refused(format!(
                "the table has sections of {}, but {mine} keeps sections of {}; set section_size = {}",
                table.section_size, self.section_size, self.section_size
            ));
        }
        let name = mine.name.clone();
        match self.asker.call(to, question).await {
            Ok(Answer::Described(what)) => {
                let what = Description { name, ..what };
                Ok(Response::new(v1::StoreReply { reply: Some(Reply::Describe((&what).into())) }))
            }
            Ok(answer) => Ok(Response::new(v1::StoreReply { reply: Some(unlike(known, answer)) })),
            Err(why) => refused(why.to_string()),
        }
    }
}

/// The reply, without a table that the caller has.
fn unlike(known: Option<Epoch>, answer: Answer) -> Reply {
    match answer {
        Answer::Table { revision, table: Some(table), promised, acting } if known == Some(table.version) => {
            let reply = Reply::from(&Answer::Table { revision, table: None, promised, acting });
            let Reply::Read(read) = reply else { return reply };
            Reply::Read(v1::ReadReply { same_table: true, ..read })
        }
        answer => (&answer).into(),
    }
}
