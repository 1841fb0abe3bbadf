//! A table that its reader has does not come again. Over real replicas.

use prost::Message as _;
use tonic::transport::Channel;

use super::*;
use seqsvr_core::ids::Epoch;
use seqsvr_rpc::v1::store_client::StoreClient;
use seqsvr_rpc::v1::store_reply::Reply;
use seqsvr_rpc::v1::store_request::Request as Asked;
use seqsvr_rpc::v1::{ReadReply, ReadRequest, StoreRequest};

/// A table with as many runs as moves for load leave at most.
fn table(version: u64) -> Arc<Table> {
    let epoch = Epoch { term: 1, version };
    let node = |name: &str| seqsvr_core::routing::Node {
        name: name.to_owned(),
        addr: "https://10.0.0.1:7101".to_owned(),
        state: seqsvr_core::routing::NodeState::Active,
    };
    let one = |section: u32| seqsvr_core::routing::Assignment {
        sections: SectionId::new(section)..=SectionId::new(section),
        node: section % 2,
        home: section % 2,
        incarnation: 1,
        epoch,
    };
    Arc::new(Table {
        set: 0,
        version: epoch,
        section_size: 100_000,
        uids: 0..=102_399_999,
        nodes: vec![node("a"), node("b")],
        assignments: (0..1_024).map(one).collect(),
    })
}

async fn replica(folder: &TempDir) -> (String, Address, AbortHandle) {
    let config = format!("cluster = \"test\"\nname = \"s\"\ndirectory = {:?}", folder.path().join("s"));
    let replica = Replica::open(toml::from_str(&config).unwrap(), Start::Init).await.unwrap();
    let addr = replica.address().unwrap();
    let served = tokio::spawn(async { replica.serve(std::future::pending()).await.unwrap() });
    let alone = quorum(vec![(addr.clone(), Arc::new(remote(&addr)))]);
    alone.establish(&terms()).await.unwrap();
    let id = alone.configuration().expect("it is stored").members[0].id;
    (addr, Address { number: 1, member: id }, served.abort_handle())
}

fn remote(addr: &str) -> Remote {
    Remote::new(addr, &Call::load(&CallConfig::default()).unwrap(), "test", 0, PATIENCE).unwrap()
}

fn client(addr: &str) -> StoreClient<Channel> {
    StoreClient::new(Call::load(&CallConfig::default()).unwrap().endpoint(addr).unwrap().connect_lazy())
}

fn read(revision: u64, wait: Duration) -> Question {
    Question::Read { revision, wait, releases: true }
}

async fn seen(remote: &Remote, to: Address) -> (u64, Option<Arc<Table>>) {
    match remote.call(to, read(0, Duration::ZERO)).await {
        Ok(Answer::Table { revision, table, .. }) => (revision, table),
        other => panic!("{other:?}"),
    }
}

/// The reply of a replica to a reader that has the table `known`.
async fn sent(client: &mut StoreClient<Channel>, to: Address, known: Option<Epoch>) -> ReadReply {
    let request = Some(Asked::Read(ReadRequest { known: known.map(Into::into), ..ReadRequest::default() }));
    let (cluster, address) = ("test".to_owned(), Some(to.into()));
    let request = StoreRequest { cluster, address, request, ..StoreRequest::default() };
    match client.call(request).await.unwrap().into_inner().reply {
        Some(Reply::Read(read)) => read,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn twenty_readers_are_sent_each_table_once() {
    let folder = tempfile::tempdir().unwrap();
    let (addr, to, served) = replica(&folder).await;
    let mut client = client(&addr);
    let (mut bytes, mut whole) = (0, 0);
    let mut known = [None; 20];
    for version in [1, 2] {
        remote(&addr).call(to, Question::Write(table(version))).await.unwrap();
        for round in 0..10 {
            for known in &mut known {
                let read = sent(&mut client, to, *known).await;
                assert_eq!((read.same_table, read.table.is_none()), (round > 0, round > 0));
                bytes += read.encoded_len();
                whole += usize::from(read.table.is_some());
                *known = Some(Epoch { term: 1, version });
            }
        }
    }
    assert_eq!(whole, 2 * 20, "of 400 answers");
    let each = seqsvr_rpc::v1::Table::from(&*table(2)).encoded_len();
    assert!(bytes < 41 * each, "{bytes} bytes for 400 answers, with a table of {each}");
    served.abort();
}

#[tokio::test]
async fn a_reader_goes_by_the_table_that_it_has_until_another_comes() {
    let folder = tempfile::tempdir().unwrap();
    let (addr, to, served) = replica(&folder).await;
    let (reader, writer) = (remote(&addr), remote(&addr));
    assert_eq!(seen(&reader, to).await.1, None);
    for version in [1, 2] {
        writer.call(to, Question::Write(table(version))).await.unwrap();
        for _ in 0..3 {
            assert_eq!(seen(&reader, to).await.1, Some(table(version)));
        }
    }
    served.abort();
}
