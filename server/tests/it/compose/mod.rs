//! The files of `docker/`, which no test can run: that the compose file of several servers can be read, that the server
//! takes its flags and variables, that its proxy is configured like the one that is tested.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

mod yaml;

use yaml::Value;

const COMPOSE: &str = include_str!("../../../../docker/compose.cluster.yaml");
const PROXY: &str = include_str!("../../../../docker/haproxy.cfg");
const TESTED_PROXY: &str = include_str!("../../../../docs/operating/haproxy.cfg");

fn tidemark(words: &[&str], environment: &[(String, String)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.args(words).env_clear().envs(environment.iter().cloned());
    command.output().expect("runs")
}

/// The three servers.
fn servers(compose: &Value) -> Vec<(&str, &Value)> {
    let services = compose.get("services").expect("services").entries();
    services.filter(|(name, _)| name.starts_with("chat-")).collect()
}

fn words(server: &Value) -> Vec<&str> {
    server.get("command").expect("a command").items().map(|word| word.text()).collect()
}

#[test]
fn the_server_takes_the_flags_and_variables_of_each() {
    let compose = yaml::read(COMPOSE);
    let help = String::from_utf8(tidemark(&["serve", "--help"], &[]).stdout).expect("text");
    let mut machines = BTreeSet::new();
    for (name, server) in servers(&compose) {
        let words = words(server);
        assert_eq!(words[0], "serve", "{name}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(&format!(" {flag} ")), "{name}: `serve --help` has no {flag}");
        }
        let environment = server.get("environment").expect("an environment");
        let environment: Vec<(String, String)> =
            environment.entries().map(|(name, value)| (name.to_owned(), value.text().to_owned())).collect();
        let checked = tidemark(&[&["check-config"], &words[1..]].concat(), &environment);
        let in_force = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{name}: {}", String::from_utf8_lossy(&checked.stderr));
        assert!(in_force.contains("postgres://tidemark@database/tidemark"), "{name}: {in_force}");
        machines.insert(in_force.lines().find(|line| line.starts_with("machine_id")).map(str::to_owned));
    }
    assert_eq!(machines.len(), 3, "each has an id of its own: {machines:?}");
}

#[test]
fn the_parts_name_each_other_as_they_are_called() {
    let compose = yaml::read(COMPOSE);
    let names: Vec<&str> = servers(&compose).into_iter().map(|(name, _)| name).collect();
    let server = |line: &'static str| line.trim().strip_prefix("server ").map(str::to_owned);
    let proxied: Vec<String> = PROXY.lines().filter_map(server).collect();
    assert_eq!(proxied, names.iter().map(|name| format!("{name} {name}:8080")).collect::<Vec<_>>());
    let at = |path: &[&str]| path.iter().fold(&compose, |value, key| value.get(key).expect(key)).text();
    let address = at(&["services", "proxy", "networks", "front", "ipv4_address"]);
    let trusted = at(&["services", "chat-1", "environment", "TIDEMARK_SERVER__TRUSTED_PROXIES"]);
    assert_eq!(trusted, format!("{address}/32"));
    assert_eq!(at(&["services", "database", "environment", "POSTGRES_USER"]), "tidemark");
    for (_, service) in compose.get("services").expect("services").entries() {
        for file in service.get("volumes").into_iter().flat_map(Value::items) {
            if let Some((file, _)) = file.text().strip_prefix("./").and_then(|mount| mount.split_once(':')) {
                assert!(Path::new("../docker").join(file).is_file(), "{file}");
            }
        }
    }
}

/// A build sees only what `.dockerignore` lets through, and cargo wants every member of the workspace.
#[test]
fn an_image_is_built_from_all_members_of_the_workspace() {
    let manifest = include_str!("../../../../Cargo.toml");
    let members =
        manifest.lines().find_map(|line| line.strip_prefix("members = ")).expect("a line of members");
    let passes: Vec<&str> = include_str!("../../../../.dockerignore").lines().collect();
    for member in
        members.split('"').filter(|part| part.starts_with(|first: char| first.is_ascii_alphabetic()))
    {
        let folder = member.split('/').next().expect("a first part");
        assert!(passes.contains(&format!("!{folder}").as_str()), "{folder}");
    }
}

/// The lines of a section of a configuration of HAProxy, without comments and those in which machines differ.
fn section(text: &str, name: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with(name)).skip(1);
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with(' ')).map(str::trim);
    let lines =
        lines.filter(|line| !line.is_empty() && !line.starts_with(['#']) && !line.starts_with("server "));
    lines.map(|line| line.replace(" resolvers docker init-addr libc,none", "")).collect()
}

#[test]
fn its_proxy_is_the_tested_one_without_https() {
    for name in ["defaults", "backend tidemark"] {
        let lines = section(PROXY, name);
        assert!(lines.len() > 4);
        assert_eq!(lines, section(TESTED_PROXY, name));
    }
    let forwards = |text: &str, name| {
        let lines = section(text, name);
        lines
            .into_iter()
            .filter(|line| line.contains("forwardfor") || line.contains("X-Forwarded-For"))
            .collect::<Vec<_>>()
    };
    assert_eq!(forwards(PROXY, "frontend http"), forwards(TESTED_PROXY, "frontend https"));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../docker/haproxy.cfg");
    let checked = Command::new("/usr/sbin/haproxy").args(["-c", "-f", file]).output().expect("runs");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
