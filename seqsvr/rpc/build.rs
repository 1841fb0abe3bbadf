//! Turns the `.proto` files into Rust, with a compiler that is itself a library: nothing to install.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

/// The services of the roles and of the issuer.
const SERVED: [&str; 2] = ["proto/seqsvr.proto", "proto/issuer.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let served = protox::compile(SERVED, ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // For reflection.
    fs::write(out.join("descriptors.bin"), served.encode_to_vec())?;
    tonic_prost_build::configure().compile_fds(served)?;
    Ok(())
}
