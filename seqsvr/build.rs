//! Turns the `.proto` files into Rust, with a compiler that is itself a library: nothing to install.

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

const FILES: [&str; 2] = ["proto/seqsvr.proto", "proto/issuer.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let described = protox::compile(FILES, ["proto"])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    // For reflection.
    let bytes = described.encode_to_vec();
    fs::write(out.join("descriptors.bin"), bytes)?;
    tonic_prost_build::configure().compile_fds(described)?;
    Ok(())
}
