//! Libraries that others wrote, as published.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::Process;

#[path = "../../../../server/tests/support/packages.rs"]
mod packages;

use packages::{from_npm, from_pip, run};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/resp/scripts")
}

/// The folder of redis-py.
fn python_path() -> PathBuf {
    from_pip("redis-py", "8.1.0", &scripts().join("requirements.txt"))
}

fn counting() -> (tempfile::TempDir, Process) {
    let folder = tempfile::tempdir().unwrap();
    let process = Process::embedded(folder.path(), &[]);
    (folder, process)
}

#[test]
fn redis_py_counts() {
    let (_folder, process) = counting();
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", python_path()).arg(scripts().join("count.py")).arg(process.port());
    assert_eq!(run(&mut command), "counted by 2 and 3\n");
}

#[test]
fn node_redis_and_ioredis_count() {
    let (_folder, process) = counting();
    let modules = from_npm("node-redis-6.3.1", &["redis@6.3.1", "ioredis@6.0.0"]).join("node_modules");
    let mut command = Command::new("node");
    command.env("NODE_PATH", modules).arg(scripts().join("count.js")).arg(process.port());
    assert_eq!(run(&mut command), "counted by redis and ioredis\n");
}

#[tokio::test]
async fn the_crate_redis_counts() {
    let (_folder, process) = counting();
    for protocol in ["resp2", "resp3"] {
        let client = redis::Client::open(format!("{}?protocol={protocol}", process.url())).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let first: u64 = redis::cmd("INCR").arg(protocol).query_async(&mut connection).await.unwrap();
        assert_eq!(first, 1);
        let mut pipeline = redis::pipe();
        pipeline
            .atomic()
            .cmd("INCR")
            .arg(protocol)
            .cmd("INCRBY")
            .arg(protocol)
            .arg(5)
            .cmd("GET")
            .arg(protocol);
        let all: (u64, u64, u64) = pipeline.query_async(&mut connection).await.unwrap();
        assert_eq!(all, (2, 7, 7));
        let refused = redis::cmd("DEL").arg(protocol).query_async::<u64>(&mut connection).await.unwrap_err();
        assert!(refused.to_string().contains("counters are never removed"), "{refused}");
    }
}
