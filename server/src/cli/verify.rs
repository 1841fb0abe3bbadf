//! `tidemark verify`: whether all that lies on the disk is as it was written.

use clap::Args;

use super::{ExitError, progress};
use crate::boot::{self, Verified};
use crate::config::Config;

const EXAMPLES: &str = "\
Examples:
  tidemark verify --config /etc/tidemark/tidemark.toml      also while the server serves
  tidemark verify --data-dir backup                         a copy of the files

Exit codes: 0 nothing is damaged, 1 something is, or a file cannot be read.";

/// Nothing to choose.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Verify {}

pub(super) fn run(_: Verify, config: &Config) -> Result<(), ExitError> {
    let bar = progress::bar();
    let verified = boot::verify(config, |bytes| bar.set_length(bytes), |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let Verified { files, damaged } = verified?;
    for place in &damaged {
        println!("{place}");
    }
    match damaged.len() {
        0 => {
            println!("{files} files are as they were written");
            Ok(())
        }
        places => Err(ExitError::failed(format!(
            "{places} places in {files} files are damaged; restore an earlier backup (`tidemark backup --check \
             DIR` says whether it is good), or import an export; docs/OPERATING.md says what is lost"
        ))),
    }
}
