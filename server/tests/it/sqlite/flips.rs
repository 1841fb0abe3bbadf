//! One bit of a stopped installation is another: a start refuses it by the name of the file, or an answer is refused and the place is
//! told, or nothing is different. Nobody ever gets other content, or fewer rows in silence.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Client;
use serde_json::Value;
use tidemark::boot;
use tidemark::config::Config;
use tidemark::domain::Clock;
use tidemark_process::Version;

use crate::api::transfer::{World, done};
use crate::sqlite::restored::copy;
use crate::support::{PATIENCE, Person};

/// So many bits are flipped, others in each run.
const FLIPS: usize = 100;

/// The outcome of a flipped bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// No server starts.
    Refused,
    /// A server serves the rest, and says that a page is damaged.
    Told,
    /// All answers are the same.
    Harmless,
}

/// The answers of a server over the files in `data`: by question, the status and the text. `Err`: none starts.
async fn answers(
    data: &Path,
    people: &[Person],
    gid: u64,
) -> Result<BTreeMap<String, (u16, String)>, String> {
    let mut config = Config::default();
    config.storage.data_dir = data.to_owned();
    config.server.listen = ([127, 0, 0, 1], 0).into();
    config.accounts.password_memory_kib = 8;
    config.limits.searches_per_account_per_minute = 0;
    let running =
        boot::start(&config, Clock::system(), Version::default()).await.map_err(|error| error.to_string())?;
    let client = Client::builder().timeout(PATIENCE).build().expect("a client");
    let mut answers = BTreeMap::new();
    for (n, person) in people.iter().enumerate() {
        let other = &people[(n + 1) % people.len()];
        let questions = [
            "me".to_owned(),
            "range".to_owned(),
            "range?direction=backward&limit=7".to_owned(),
            "seq".to_owned(),
            "conversations".to_owned(),
            format!("conversations/u:{}/messages", other.uid),
            format!("conversations/g:{gid}/messages"),
            format!("groups/{gid}"),
            "friends".to_owned(),
            "settings".to_owned(),
            "moments".to_owned(),
            format!("users?name={}", other.name),
            "sessions".to_owned(),
        ];
        for question in questions {
            let url = format!("http://{}/api/v1/{question}", running.address());
            let answer = client.get(url).bearer_auth(&person.token).send().await.expect("an answer");
            let (status, text) = (answer.status().as_u16(), answer.text().await.expect("a text"));
            // A refusal has a number of its own.
            let text = if status < 400 { text } else { code(&text) };
            answers.insert(format!("{} {question}", person.name), (status, text));
        }
    }
    let ready = client.get(format!("http://{}/ready", running.address())).send().await.expect("an answer");
    answers.insert("ready".to_owned(), (ready.status().as_u16(), ready.text().await.expect("a text")));
    // Rows that cannot be flushed stay in the journal.
    _ = running.stop(Duration::from_secs(20)).await;
    Ok(answers)
}

fn code(problem: &str) -> String {
    let problem: Value = serde_json::from_str(problem).expect("JSON");
    problem["code"].as_str().expect("a code").to_owned()
}

async fn fate(
    data: &Path,
    (name, bit): (&str, usize),
    (people, gid): (&[Person], u64),
    expected: &BTreeMap<String, (u16, String)>,
) -> Fate {
    let mut bytes = fs::read(data.join(name)).expect("readable");
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(data.join(name), &bytes).expect("written");
    let answered = match answers(data, people, gid).await {
        Ok(answered) => answered,
        Err(refusal) => {
            let is_named = refusal.contains(name) || refusal.contains("`tidemark verify`");
            assert!(!refusal.contains('\n') && is_named, "bit {bit} of {name}: {refusal}");
            return Fate::Refused;
        }
    };
    let (status, ready) = &answered["ready"];
    let is_told = *status == 503 || ready.contains("its checksum is wrong");
    for (question, answer) in &answered {
        let is_refused = answer.0 >= 500;
        assert!(
            question == "ready" || *answer == expected[question] || (is_refused && is_told),
            "bit {bit} of {name}, {question}: {answer:?} and not {:?}; ready: {ready}",
            expected[question]
        );
    }
    if is_told { Fate::Told } else { Fate::Harmless }
}

#[tokio::test]
async fn a_flipped_bit_is_refused_or_told_or_harmless() {
    let mut world = World::new().await;
    world.app.stop().await;
    let data = world.file("data");
    let seed = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    // A start changes the files, and so may what follows from it.
    _ = answers(&data, &world.people, world.gid).await.expect("whole");
    let good = world.file("good");
    copy(&data, &good);
    let expected = answers(&data, &world.people, world.gid).await.expect("whole");
    assert_eq!(expected["ready"], (200, "{\"status\":\"ready\"}".to_owned()));

    let sizes = fs::read_dir(&good).expect("readable").map(|file| {
        let file = file.expect("readable");
        (file.file_name().into_string().expect("UTF-8"), file.metadata().expect("there").len() as usize)
    });
    let sizes: Vec<_> = sizes.filter(|(name, size)| *size > 0 && !name.ends_with("-shm")).collect();
    // Each file in turn: by size alone most would be in one.
    let chosen: Vec<(String, usize)> = (0..FLIPS)
        .map(|n| {
            let (name, size) = &sizes[n % sizes.len()];
            (name.clone(), random.random_range(0..size * 8))
        })
        .collect();
    let all = (&world.people[..], world.gid);
    let each = chosen.iter().enumerate().map(async |(n, (name, bit))| {
        let place = world.file(&format!("flip-{n}"));
        copy(&good, &place);
        let fate = fate(&place, (name, *bit), all, &expected).await;
        // A start that was refused may still be closing its files; the rest goes with the whole directory.
        _ = fs::remove_dir_all(&place);
        (name.clone(), fate)
    });
    let mut fates: BTreeMap<(String, Fate), usize> = BTreeMap::new();
    let mut done = stream::iter(each).buffer_unordered(4);
    while let Some(fate) = done.next().await {
        *fates.entry(fate).or_default() += 1;
    }
    println!("{fates:?}");
    assert!(fates.keys().any(|(_, fate)| *fate == Fate::Refused), "{fates:?}");
}

#[tokio::test]
async fn verify_names_the_damage_also_beside_a_server() {
    let mut world = World::new().await;
    let data = world.file("data");
    assert!(done(&data, &["verify"]).await.ends_with("files are as they were written"), "beside a server");
    world.app.stop().await;
    let place = world.file("changed");
    let lines = async |change: &dyn Fn(&Path)| {
        copy(&data, &place);
        change(&place);
        let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidemark"))
            .args(["verify", "--data-dir"])
            .arg(&place)
            .output()
            .await
            .expect("runs");
        fs::remove_dir_all(&place).expect("removed");
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    for name in ["tidemark.db", "ids.db", "sequence.db", "tidemark.journal.1.dat"] {
        let missing = lines(&|place| fs::remove_file(place.join(name)).expect("removed")).await;
        assert!(missing.contains(&format!("{name}: it is missing")), "{missing}");
        let empty = lines(&|place| fs::write(place.join(name), "").expect("emptied")).await;
        assert!(empty.contains(&format!("{name}: it is empty")), "{empty}");
    }
    let header = lines(&|place| {
        let path = place.join("tidemark.db");
        let mut bytes = fs::read(&path).expect("readable");
        bytes[20] ^= 1;
        fs::write(path, bytes).expect("written");
    })
    .await;
    assert!(header.contains("tidemark.db: its pages have no sums"), "{header}");
    let early = world.file("early");
    copy(&data, &early);
    world.app.start_again().await;
    world.app.stop().await;
    let mixed = lines(&|place| {
        let name = "tidemark.journal.0.dat";
        fs::copy(early.join(name), place.join(name)).expect("put back");
    })
    .await;
    assert!(mixed.contains("tidemark.journal.0.dat: it is of another moment"), "{mixed}");
    let path = data.join("tidemark.db");
    let mut bytes = fs::read(&path).expect("readable");
    let last = bytes.len() / 4_096;
    bytes[(last - 1) * 4_096 + 100] ^= 4;
    fs::write(&path, bytes).expect("written");
    let log = data.join("tidemark.journal.0.dat");
    let mut bytes = fs::read(&log).expect("readable");
    bytes[4_096 + 600] ^= 4;
    fs::write(&log, bytes).expect("written");
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_tidemark"))
        .args(["verify", "--data-dir"])
        .arg(&data)
        .output()
        .await
        .expect("runs");
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{failed}");
    let page = format!("page {last} of tidemark.db is damaged: its checksum is wrong");
    assert!(said.contains(&page), "{said}");
    assert!(said.contains("tidemark.journal.0.dat: its checksum is wrong (byte 4608)"), "{said}");
    assert!(failed.contains("2 places in ") && failed.contains("are damaged; restore"), "{failed}");
}
