//! The migrations are compiled in; a new file among them must rebuild the crate.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
