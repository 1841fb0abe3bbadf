//! Turns the `.proto` files into Rust, with a compiler that is itself a library: nothing to install.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let messages =
        protox::compile(["proto/table.proto", "proto/row.proto", "proto/filter.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(messages)?;
    Ok(())
}
