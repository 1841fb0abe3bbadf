//! Turns the `.proto` file into Rust, with a compiler that is itself a library: nothing to install.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let called = protox::compile(["proto/etcd.proto"], ["proto"])?;
    tonic_prost_build::configure().build_server(false).compile_fds(called)?;
    Ok(())
}
