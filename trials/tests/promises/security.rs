//! TLS and tokens between all roles: a whole cluster works with them, and whoever lacks one is told so in one line.

use std::path::Path;

use futures_util::future::join_all;
use seqsvr_core::Uid;
use tidemark_test_support::servers::certificates::issue;
use tidemark_trials::cluster::{Certificates, Cluster, Shape};

use crate::support::{Changes, RunningRole, altered, assert_says, program, refusal, seqsvr, shape};

/// Certificates and tokens for a cluster on the loopback, made anew.
fn issued(folder: &Path) -> Certificates {
    std::fs::create_dir_all(folder).unwrap();
    let token = |name: &str| {
        let path = folder.join(name);
        std::fs::write(&path, format!("{:032x}", rand::random::<u128>())).unwrap();
        path
    };
    let files = issue(folder);
    Certificates {
        authority: files.authority,
        certificate: files.certificate,
        key: files.key,
        token: token("token"),
        admin_token: token("admin-token"),
    }
}

/// A line of a configuration.
fn key(name: &str, path: &Path) -> String {
    format!("{name} = {path:?}\n")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_and_tokens_everybody_works_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = issued(&folder.path().join("own"));
    let foreign = issued(&folder.path().join("foreign"));
    let shape = Shape { certificates: Some(certificates.clone()), ..shape(2, 2) };
    let mut cluster = Cluster::start(&program("seqsvr"), folder.path(), &shape).await.unwrap();
    let config = cluster.client_config().to_owned();
    let config = config.as_path();

    let library = cluster.client().unwrap().next(Uid::new(42), 1).await.unwrap();
    let reported = seqsvr(&["next", "42"], config).await;
    let number: u64 = reported.out.trim().parse().unwrap_or_else(|_| panic!("no number: {reported:?}"));
    assert!(number > library.last);

    callers_are_answered_with_what_they_lack(config, &certificates, &foreign).await;
    operators_are_answered_with_what_they_lack(config, &certificates).await;
    let drained = seqsvr(&["drain", "alloc1"], config).await;
    assert_eq!(drained.code, Some(0), "with the operators' token: {drained:?}");
    roles_say_what_they_lack(&mut cluster, folder.path(), &certificates, &foreign).await;
    cluster.stop().await.unwrap();
}

async fn callers_are_answered_with_what_they_lack(
    config: &Path,
    certificates: &Certificates,
    foreign: &Certificates,
) {
    let text = std::fs::read_to_string(config).unwrap();
    let security = text.split("\n[[sets]]").next().unwrap();
    let (token, authority) =
        (key("token_file", &certificates.token), key("authority", &certificates.authority));
    let strange = (key("token_file", &foreign.token), key("authority", &foreign.authority));
    let callers: [(&str, Changes<'_>, &str); 4] = [
        ("wrong-token", &[(&token, &strange.0)], "the token is wrong; see token_file"),
        ("no-token", &[(&token, "")], "a token is needed; set token_file"),
        ("wrong-authority", &[(&authority, &strange.1)], "invalid peer certificate"),
        ("plain-text", &[(security, ""), ("https://", "http://")], "write https:// and set authority"),
    ];
    // At the same time, since each tries for a second.
    join_all(callers.map(async |(name, changes, why)| {
        let config = altered(config, name, changes);
        let next = refusal(1, &["next", "42", "--within", "1"], &config);
        let route = refusal(1, &["route", "--within", "1"], &config);
        let (next, route) = tokio::join!(next, route);
        assert_says(&next, why);
        assert_says(&route, why);
    }))
    .await;
}

async fn operators_are_answered_with_what_they_lack(config: &Path, certificates: &Certificates) {
    let admin = key("admin_token_file", &certificates.admin_token);
    let normal = key("admin_token_file", &certificates.token);
    let callers = [
        ("normal-token", normal.as_str(), "the token is wrong; see admin_token_file"),
        ("no-admin-token", "", "a token is needed; set admin_token_file"),
    ];
    for (name, instead, why) in callers {
        let config = altered(config, name, &[(&admin, instead)]);
        for words in [["drain", "alloc1"].as_slice(), &["add", "alloc1"], &["rebalance"]] {
            assert_says(&refusal(1, words, &config).await, why);
        }
    }
}

/// An AllocSvr and an arbiter that the stores do not serve, and an arbiter that the AllocSvrs do not answer.
async fn roles_say_what_they_lack(
    cluster: &mut Cluster,
    folder: &Path,
    certificates: &Certificates,
    foreign: &Certificates,
) {
    let to_call = |certificates: &Certificates| {
        key("authority", &certificates.authority) + &key("token_file", &certificates.token)
    };
    let strange = Certificates { token: foreign.token.clone(), ..certificates.clone() };
    // Of a process that runs, with a wrong token in one section.
    let stranger = |role: &str, section: &str| {
        let own = folder.join(format!("{role}1.toml"));
        let text = std::fs::read_to_string(&own).unwrap();
        let places =
            text.lines().filter(|line| line.contains("listen = ") || line.starts_with("directory = "));
        let (right, wrong) = (
            format!("[{section}]\n{}", to_call(certificates)),
            format!("[{section}]\n{}", to_call(&strange)),
        );
        let elsewhere = format!("directory = {:?}", folder.join("elsewhere"));
        let mut changes = vec![(right.as_str(), wrong.as_str())];
        for place in places {
            changes.push((place, if place.starts_with("directory") { &elsewhere } else { "" }));
        }
        altered(&own, &format!("strange-{role}-{section}"), &changes)
    };
    let wrong = "the token is wrong; see token_file";
    RunningRole::start("alloc", &stranger("alloc", "sets.stores.security")).says(wrong).await;
    RunningRole::start("arbiter", &stranger("arbiter", "stores.security")).says(wrong).await;
    for arbiter in &mut cluster.arbiters {
        arbiter.stop().await.unwrap();
    }
    RunningRole::start("arbiter", &stranger("arbiter", "call")).says(wrong).await;
}

#[tokio::test]
async fn beyond_loopback_no_role_starts_without_tls_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = issued(&folder.path().join("own"));
    // Not a port that could be listened on: what is refused must be refused before.
    let stores = "stores = { replicas = [\"http://127.0.0.1:1\"] }";
    let roles = [
        ("store", format!("name = \"a\"\ndirectory = {:?}\n", folder.path().join("store"))),
        (
            "alloc",
            format!("name = \"a\"\ndirectory = {:?}\n\n[[sets]]\n{stores}\n", folder.path().join("alloc")),
        ),
        (
            "arbiter",
            format!(
                "number = 0\n{stores}\nset = {{}}\nallocators = [{{ name = \"a\", addr = \"http://127.0.0.1:1\" }}]\n"
            ),
        ),
    ];
    let pair = key("certificate", &certificates.certificate) + &key("key", &certificates.key);
    let token = key("token_file", &certificates.token);
    let half = key("certificate", &certificates.certificate) + &token;
    let (both, missing) = (format!("{pair}{token}"), "set certificate, key and token_file");
    let broken = key("certificate", &certificates.certificate) + &key("key", &certificates.token) + &token;
    for (role, keys) in &roles {
        let mut lacking = vec![
            ("", missing),
            (token.as_str(), missing),
            (pair.as_str(), missing),
            (half.as_str(), "set both certificate and key"),
        ];
        match *role {
            "alloc" => lacking.push((&broken, "the certificates cannot be used")),
            "arbiter" => lacking.push((&both, "set certificate, key and admin_token_file")),
            _ => {}
        }
        for (security, why) in lacking {
            let text = format!("cluster = \"c\"\nlisten = \"0.0.0.0:0\"\n{keys}\n[security]\n{security}");
            let config = folder.path().join(format!("{role}.toml"));
            std::fs::write(&config, text).unwrap();
            assert_says(&refusal(2, &[role], &config).await, why);
        }
    }
}
