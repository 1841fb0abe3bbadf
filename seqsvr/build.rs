//! Turns the `.proto` files into Rust, with a compiler that is itself a library: nothing to install.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

/// What this program serves.
const SERVED: [&str; 2] = ["proto/seqsvr.proto", "proto/issuer.proto"];

/// What it only calls.
const CALLED: [&str; 1] = ["proto/etcd.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let served = protox::compile(SERVED, ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // For reflection.
    fs::write(out.join("descriptors.bin"), served.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(served)?;
    let called = protox::compile(CALLED, ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(called)?;
    Ok(())
}
