//! Searches over stores and indexes in memory, compared with a plain look through all rows.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::domain::{Amendment, Body, Content, GroupId, Kind, RangeQuery};
use crate::store::conformance::{accept, accepted, row, text_message};
use crate::store::memory::MemoryStore;
use crate::store::search::MemoryIndex;

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const EVE: Uid = Uid(10_003);

struct World {
    store: Arc<MemoryStore>,
    index: Arc<MemoryIndex>,
    search: Search,
    indexer: Indexer,
    /// The next id of each inbox, and the next name of a message.
    next: BTreeMap<Uid, u64>,
    name: u128,
    said: Vec<Arc<Content>>,
}

impl World {
    fn new(options: SearchOptions) -> World {
        let (store, index, due) =
            (Arc::new(MemoryStore::new()), Arc::new(MemoryIndex::default()), Arc::new(Due::new(4)));
        let search = Search::new(store.clone(), index.clone(), Arc::clone(&due), options);
        let options = IndexerOptions { rows: 4, pause: 0, expires: true };
        let number = std::sync::atomic::AtomicU64::new(2);
        let new_uuid = Arc::new(move || {
            Uuid::from_u128(number.fetch_add(2, std::sync::atomic::Ordering::Relaxed).into())
        });
        let indexer = Indexer { store: store.clone(), index: index.clone(), due, new_uuid, options };
        World { store, index, search, indexer, next: BTreeMap::new(), name: 0, said: Vec::new() }
    }

    async fn put(&mut self, content: Arc<Content>, receivers: &[Uid]) {
        let rows = receivers.iter().map(|uid| {
            let next = self.next.entry(*uid).or_insert(0);
            *next += 1 + u64::from(self.name as u32 % 3);
            row(*uid, *next)
        });
        let rows = rows.collect();
        accepted(&*self.store, accept(content, rows, Vec::new())).await;
    }

    async fn say(&mut self, from: Uid, to: Uid, text: &str) {
        self.name += 1;
        let said = text_message(from, Conversation::User(to), self.name, text);
        self.said.push(Arc::clone(&said));
        self.put(said, &[from, to]).await;
    }

    async fn amend(&mut self, at: usize, what: Amendment) {
        let said = Arc::clone(&self.said[at % self.said.len()]);
        let Conversation::User(other) = said.target else { panic!("{said:?}") };
        self.name += 1;
        let body = Body::amendment(&what, said.key().expect("named"), &said, 1_000).expect("short");
        let row = text_message(said.sender, said.target, self.name, "replaced");
        let content = Arc::new(Content { kind: what.kind(), body, ..Content::clone(&row) });
        self.put(content, &[said.sender, other]).await;
    }

    /// All pages of a search, which must go forward.
    async fn find(&self, who: Uid, request: &SearchRequest) -> Vec<Hit> {
        let (mut request, mut hits) = (request.clone(), Vec::new());
        for _ in 0..10_000 {
            let Found { hits: more, next_before, is_complete, .. } =
                self.search.find(who, &request).await.expect("found");
            assert!(is_complete && more.len() <= request.limit);
            hits.extend(more);
            match next_before {
                None => return hits,
                Some(next) => {
                    assert!(request.before.is_none_or(|before| next < before), "{next}");
                    request.before = Some(next);
                }
            }
        }
        panic!("{request:?} has no end");
    }

    /// The same by a look through all rows.
    async fn look(&self, who: Uid, request: &SearchRequest) -> Vec<Hit> {
        let rows =
            self.store.range(who, RangeQuery::before(None, RangeQuery::MAX_ROWS)).await.expect("read").rows;
        rows.into_iter().filter_map(|row| request.hit(row)).collect()
    }

    async fn index(&self) {
        self.indexer.walk().await.expect("indexed");
    }
}

fn words(text: &str) -> SearchRequest {
    SearchRequest { words: Some(SearchWords::new(text).expect(text)), limit: 3, ..SearchRequest::default() }
}

fn texts(hits: &[Hit]) -> Vec<String> {
    hits.iter().map(|hit| hit.row.content.body.said().expect("a text")).collect()
}

#[tokio::test]
async fn words_are_found_newest_first_whether_they_are_indexed_or_not() {
    let mut world = World::new(SearchOptions::default());
    for n in 0..30 {
        world.say(ANN, BOB, &format!("Low tide {n}")).await;
        world.say(EVE, ANN, &format!("去北京 {n}")).await;
    }
    for indexed in [false, true] {
        if indexed {
            world.index().await;
            assert!(!world.index.segments(ANN).await.expect("asked").is_empty());
        }
        let found = world.find(ANN, &words("北京")).await;
        assert_eq!(texts(&found)[..2], ["去北京 29", "去北京 28"]);
        assert_eq!((found.len(), &found[0].marks[..]), (30, &[(1, 3)][..]));
        assert_eq!(
            texts(&world.find(ANN, &words("ide 7 low")).await),
            ["Low tide 27", "Low tide 17", "Low tide 7"]
        );
        assert!(world.find(EVE, &words("tide")).await.is_empty(), "others' messages");
        assert!(world.find(Uid(99), &words("tide")).await.is_empty());
        let of_eve = SearchRequest { sender: Some(EVE), ..words("2") };
        assert_eq!(world.find(ANN, &of_eve).await.len(), 12);
        let with_bob =
            SearchRequest { words: None, conversation: Some(Conversation::User(BOB)), ..words("2") };
        assert_eq!(world.find(ANN, &with_bob).await.len(), 30);
        let nobody = SearchRequest { conversation: Some(Conversation::Group(GroupId(4))), ..words("tide") };
        assert!(world.find(ANN, &nobody).await.is_empty());
        let middle = Some(Timestamp(world.said[20].sent_at.0));
        let since = SearchRequest { from: middle, ..words("tide") };
        let before = SearchRequest { to: middle, ..words("tide") };
        assert_eq!((world.find(ANN, &since).await.len(), world.find(ANN, &before).await.len()), (20, 10));
    }
}

#[tokio::test]
async fn messages_are_found_as_they_stand_however_old_they_are() {
    let mut world = World::new(SearchOptions::default());
    for n in 0..80 {
        world.say(ANN, BOB, &format!("first {n}")).await;
    }
    world.index().await;
    world.amend(5, Amendment::Edit("second".to_owned())).await;
    world.amend(6, Amendment::Recall).await;
    for _ in 0..3 {
        assert_eq!(texts(&world.find(BOB, &words("second")).await), ["second"]);
        assert_eq!(world.find(BOB, &words("first")).await.len(), 78);
        // The next rounds find it in a segment, and in a merged one.
        for n in 0..40 {
            world.say(BOB, ANN, &format!("more {n}")).await;
        }
        world.index().await;
    }
    let levels: Vec<u8> =
        world.index.segments(BOB).await.expect("asked").iter().map(|head| head.level).collect();
    assert!(levels.contains(&1), "{levels:?}");
}

#[tokio::test]
async fn a_page_costs_no_more_than_its_bounds_and_the_next_goes_on() {
    let options = SearchOptions { scanned: 10, candidates: 20, takes: Duration::ZERO };
    let mut world = World::new(options);
    for n in 0..200 {
        world.say(ANN, BOB, if n % 50 == 0 { "rare" } else { "often" }).await;
    }
    for indexed in [false, true] {
        if indexed {
            world.index().await;
        }
        assert_eq!(world.find(ANN, &words("rare")).await.len(), 4);
        assert_eq!(world.find(ANN, &words("often")).await.len(), 196);
        assert!(world.find(ANN, &words("rare often")).await.is_empty());
    }
}

#[tokio::test]
async fn a_lost_or_damaged_index_loses_nothing_and_is_made_again() {
    let mut world = World::new(SearchOptions::default());
    for n in 0..100 {
        world.say(ANN, BOB, &format!("tide {n}")).await;
    }
    world.index().await;
    let head = world.index.segments(ANN).await.expect("asked").remove(0);
    let lies = crate::store::search::NewSegment {
        head: crate::store::search::SegmentHead { number: 1, ..head.clone() },
        parts: vec![vec![9]; 50],
    };
    assert_eq!(world.index.replace(ANN, &[head.number], Some(lies)).await, Ok(true));
    assert_eq!(world.find(ANN, &words("tide")).await.len(), 100);
    world.indexer.index_due().await.expect("thrown away");
    assert_eq!(world.index.segments(ANN).await, Ok(Vec::new()));
    assert_eq!(world.find(ANN, &words("tide")).await.len(), 100);
    world.index().await;
    assert_eq!(world.find(ANN, &words("tide")).await.len(), 100);
}

#[tokio::test]
async fn a_rebuild_makes_every_segment_again() {
    let mut world = World::new(SearchOptions::default());
    for n in 0..100 {
        world.say(ANN, BOB, &format!("tide {n}")).await;
    }
    world.index().await;
    let before = world.index.segments(ANN).await.expect("asked");
    world.index().await;
    assert_eq!(world.index.segments(ANN).await.expect("asked"), before);
    assert_eq!(world.index.ask_rebuild().await, Ok(1));
    world.index().await;
    let after = world.index.segments(ANN).await.expect("asked");
    assert!(
        after.iter().all(|head| before.iter().all(|old| old.build < head.build && old.number != head.number))
    );
    let rebuild = world.index.rebuild().await.expect("asked");
    assert_eq!((rebuild.wanted, rebuild.walked), (1, 1));
    assert_eq!(world.find(ANN, &words("tide")).await.len(), 100);
}

#[tokio::test]
async fn new_rows_are_indexed_when_there_are_enough_of_them() {
    let mut world = World::new(SearchOptions::default());
    let due = Arc::clone(&world.indexer.due);
    for n in [1, 2, 40, 41] {
        while world.said.len() < n {
            world.say(ANN, BOB, "tide").await;
        }
        let latest = world.store.watermark(ANN).await.expect("asked");
        due.note(&[(ANN, latest)]);
        world.indexer.index_due().await.expect("indexed");
        let to = world.index.indexed(&[ANN]).await.expect("asked")[0].to;
        assert!(latest.get() - to.get() < 4 && (n > 1 || to == MessageId::ZERO), "{to} of {latest}");
    }
    assert!(due.now().indexed >= 30);
}

#[derive(Clone, Debug)]
enum Step {
    Say(bool, &'static str),
    Edit(usize, &'static str),
    Recall(usize),
    Delete(usize),
    Index,
    Rebuild,
    Expire(usize),
}

const TEXTS: [&str; 6] = ["low tide", "Tiède", "去北京 today", "to", "a longer text of today", "北"];
const SEARCHES: [&str; 8] = ["tide", "to", "北京", "北", "day", "e", "longer tide", "zzz"];

fn step() -> impl Strategy<Value = Step> {
    let text = || proptest::sample::select(&TEXTS[..]);
    prop_oneof![
        8 => (any::<bool>(), text()).prop_map(|(by_ann, text)| Step::Say(by_ann, text)),
        2 => (0usize..100, text()).prop_map(|(at, text)| Step::Edit(at, text)),
        1 => (0usize..100).prop_map(Step::Recall),
        1 => (0usize..100).prop_map(Step::Delete),
        2 => Just(Step::Index),
        1 => Just(Step::Rebuild),
        1 => (0usize..100).prop_map(Step::Expire),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn whatever_happens_a_search_finds_what_a_look_through_all_rows_finds(
        steps in prop::collection::vec(step(), 1..120), scanned in 1usize..300, limit in 1usize..20,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let options = SearchOptions { scanned: 10_000 / scanned, candidates: scanned, ..SearchOptions::default() };
            let mut world = World::new(options);
            for step in steps {
                let is_there = !world.said.is_empty();
                match step {
                    Step::Say(true, text) => world.say(ANN, BOB, text).await,
                    Step::Say(false, text) => world.say(BOB, ANN, text).await,
                    Step::Edit(at, text) if is_there => {
                        let said = Arc::clone(&world.said[at % world.said.len()]);
                        let copy = world.store.copies(said.key().expect("named"), &[ANN]).await.expect("asked")[0];
                        let row = match copy { Some(id) => world.store.entry(ANN, id).await.expect("read"), None => None };
                        // Recalled messages are not edited.
                        if row.is_some_and(|row| row.content.kind == Kind::Message) {
                            world.amend(at, Amendment::Edit(text.to_owned())).await;
                        }
                    }
                    Step::Recall(at) if is_there => world.amend(at, Amendment::Recall).await,
                    Step::Delete(at) if is_there => world.amend(at, Amendment::Delete).await,
                    Step::Index => world.index().await,
                    Step::Rebuild => _ = world.index.ask_rebuild().await.expect("asked"),
                    Step::Expire(at) if is_there => {
                        let before = world.said[at % world.said.len()].sent_at;
                        world.store.expire_rows(None, before, 1_000).await.expect("expired");
                    }
                    _ => {}
                }
            }
            for search in SEARCHES {
                for sender in [None, Some(ANN)] {
                    let request = SearchRequest { sender, limit, ..words(search) };
                    for who in [ANN, BOB] {
                        assert_eq!(world.find(who, &request).await, world.look(who, &request).await, "{request:?}");
                    }
                }
            }
        });
    }
}
