//! The list is what a fresh machine gets, so a program that it lacks is found here and not there.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::*;

#[test]
fn only_what_is_missing_is_named_and_once() {
    let needed: &[&[Needed]] =
        &[&[("sh", "dash"), ("no-such-program", "nowhere")], &[("/no/*/such", "nowhere")]];
    assert_eq!(missing(needed), ["nowhere"]);
}

#[test]
fn a_program_is_found_in_the_path_and_a_file_where_it_is() {
    assert!(found("sh"));
    assert!(!found("no-such-program-anywhere"));
    assert!(found("/proc/*/status"));
    assert!(!found("/proc/*/no-such-file"));
    assert!(found("/proc/self/status"));
}

/// Programs of every Debian and its shell, programs that bring this one, and programs that only measurements and a release start,
/// which say so themselves; and git, without which a program does not say its commit.
const GIVEN: [&str; 11] = [
    "/bin/sh",
    "sh",
    "nice",
    "timeout",
    "ulimit",
    "apt-get",
    "cargo",
    "rustdoc",
    "git",
    "systemd-analyze",
    "tar",
];

/// The text before the name of a program where one is started.
const STARTS: [&str; 3] = ["Command::new(\"", "command(\"/", "binary(\""];

/// The same in the starters of servers and in tests, where a line of the shell is composed; elsewhere it may be any line.
const SHELL_LINE: &str = "let line = format!(\"";

#[test]
fn every_program_that_is_started_is_listed() {
    let mut started = BTreeSet::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        // As if each call stood on one line.
        let text = text.lines().map(str::trim).collect::<String>();
        let path = file.to_string_lossy();
        let shell = (path.contains("/servers/") || path.contains("/tests/")).then_some(SHELL_LINE);
        for start in STARTS.into_iter().chain(shell) {
            for (at, _) in text.match_indices(start) {
                // A path begins within the pattern.
                let name = &text[at + start.rfind('"').unwrap() + 1..];
                let name = name.split(['"', ' ']).next().unwrap_or_default();
                if !name.starts_with('{') {
                    started.insert(name.to_owned());
                }
            }
        }
    }
    // So that a change of how programs are started does not blind this test.
    for known in ["cc", "chromedriver", "etcd", "initdb", "kill", "npm", "python3", "redis-server"] {
        assert!(started.contains(known), "no call was found that starts {known}: {started:?}");
    }
    let listed: BTreeSet<_> = ALL.iter().copied().flatten().map(|(program, _)| file_name(program)).collect();
    for program in started {
        let given = GIVEN.contains(&program.as_str());
        assert!(given || listed.contains(file_name(&program)), "{program} is started and not listed");
    }
}

/// Packages that bring a program as well as the one that it is listed with: Node.js's own.
const ALSO: [(&str, &str); 1] = [("npm", "nodejs")];

#[test]
fn every_package_brings_what_it_is_listed_for() {
    if !found_in_path("dpkg-query") {
        return;
    }
    for (program, package) in ALL.iter().copied().flatten().filter(|(program, _)| found(program)) {
        let Some(packaged) = packaged(program) else { continue };
        let owners = ask_dpkg(&["--search", &packaged]);
        let owners = owners.split_once(": ").map_or("", |(owners, _)| owners).split(", ");
        let owners: Vec<_> = owners.map(|owner| owner.split(':').next().unwrap_or_default()).collect();
        // Some packages only stand for the newest version of another, and that one brings its clients.
        let mut brings = BTreeSet::<String>::from([(*package).to_owned()]);
        brings.extend(
            ALSO.iter().filter(|(also, _)| also == program).map(|(_, package)| (*package).to_owned()),
        );
        for _ in 0..2 {
            let depends: Vec<_> = brings.iter().flat_map(|one| depends(one)).collect();
            brings.extend(depends);
        }
        assert!(owners.iter().any(|&owner| brings.contains(owner)), "{program}: {owners:?}, not {package}");
    }
}

#[test]
fn no_build_script_starts_a_program() {
    for script in sources().into_iter().filter(|file| file.ends_with("build.rs")) {
        assert!(!fs::read_to_string(&script).unwrap().contains("Command"), "{}", script.display());
    }
    // Crates that are compiled here; the lock file also names crates for other systems.
    let words = ["tree", "--locked", "--workspace", "--edges", "all", "--prefix", "none", "--format", "{p}"];
    let tree = Command::new(env!("CARGO")).args(words).current_dir(root()).output().unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(
        tree.lines().any(|line| line.starts_with("prost-build ")),
        "cargo tells what is compiled: {tree}"
    );
    // Crates that run programs which cargo does not bring.
    for crate_name in ["autotools", "bindgen", "cmake", "etcd-client", "protobuf-src", "protoc-bin-vendored"]
    {
        let line = tree.lines().find(|line| line.split(' ').next() == Some(crate_name));
        assert_eq!(line, None, "its build needs another program");
    }
}

/// The file of a listed program that a package owns: alternatives are links to it. `None`: it was not installed by a package.
fn packaged(program: &str) -> Option<String> {
    let mut file = match program.split_once("/*/") {
        Some((folder, rest)) => {
            let inside = fs::read_dir(folder).unwrap().flatten().map(|one| one.path().join(rest));
            inside.filter(|file| file.is_file()).max()?
        }
        None => {
            let path = env::var_os("PATH").unwrap_or_default();
            env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())?
        }
    };
    if file.starts_with("/usr/local") {
        return None;
    }
    // One link after the other: the first that a package owns.
    for _ in 0..5 {
        let text = file.display().to_string();
        // In older packages programs still stand in /bin, which is the same folder.
        for name in [text.clone(), text.replacen("/usr/bin/", "/bin/", 1)] {
            if !ask_dpkg(&["--search", &name]).is_empty() {
                return Some(name);
            }
        }
        file = file.parent()?.join(fs::read_link(&file).ok()?);
    }
    None
}

fn depends(package: &str) -> Vec<String> {
    let depends = ask_dpkg(&["--show", "--showformat", "${Depends}", package]);
    let names = depends.split([',', '|']).filter_map(|one| one.split_whitespace().next());
    names.map(str::to_owned).collect()
}

fn ask_dpkg(words: &[&str]) -> String {
    let output = Command::new("dpkg-query").args(words).output().expect("it is in the path");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Rust files of the workspace but this one.
fn sources() -> Vec<PathBuf> {
    let crates = ["client", "process", "seqsvr", "server", "table", "test-support", "trials", "web", "xtask"];
    let mut folders: Vec<_> = crates.map(|name| root().join(name)).into();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("packages/tests.rs")
            {
                files.push(path);
            }
        }
    }
    files
}
