//! The command line of both programs, beside their own commands: reading it, and writing its manual.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command, Parser};
use clap_complete::{Shell, generate_to};

use crate::{ExitError, Version};

/// Understands the command line of a program of this version.
///
/// # Errors
///
/// One line says what is wrong with it.
pub fn parse<C: Parser>(args: impl IntoIterator<Item = OsString>, version: Version) -> Result<C, ExitError> {
    let mut command = described::<C>(version);
    let mut found = command.try_get_matches_from_mut(args)?;
    Ok(C::from_arg_matches_mut(&mut found).map_err(|error| error.format(&mut command))?)
}

fn described<C: Parser>(version: Version) -> Command {
    C::command().version(version.to_string())
}

/// `PROGRAM manual FOLDER`, the hidden command by which a release gets what the help says in other forms.
#[derive(Debug, Args)]
pub struct Manual {
    /// The folder to write to; created if it is missing
    folder: PathBuf,
}

impl Manual {
    /// Writes a man page for each command of `C`, and its completions for bash, zsh and fish.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn write<C: Parser>(&self, version: Version) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut command = described::<C>(version);
        let name = command.get_name().to_owned();
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            generate_to(shell, &mut command, &name, &self.folder)?;
        }
        clap_mangen::generate_to(described::<C>(version), &self.folder)
    }
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "buoy")]
    struct Buoy {
        #[command(subcommand)]
        command: Task,
    }

    #[derive(Debug, Subcommand)]
    enum Task {
        /// Float
        Float,
        #[command(hide = true)]
        Manual(Manual),
    }

    #[test]
    fn the_version_is_that_of_the_program() {
        let version = Version::of(("0bd88b1f", "2026-11-26"));
        let asked = parse::<Buoy>(["buoy", "--version"].map(Into::into), version).expect_err("no command");
        let ExitError::Help(said) = asked else { panic!("{asked:?}") };
        assert_eq!(said.to_string(), format!("buoy {version}\n"));
    }

    #[test]
    fn a_manual_has_each_command_that_is_shown() {
        let folder = std::env::temp_dir().join(format!("buoy-{}", std::process::id()));
        let words = ["buoy".into(), "manual".into(), folder.clone().into()];
        let Buoy { command: Task::Manual(manual) } = parse(words, Version::default()).expect("understood")
        else {
            panic!("another command")
        };
        manual.write::<Buoy>(Version::default()).expect("written");
        let listed = fs::read_dir(&folder).expect("a folder");
        let mut files: Vec<_> = listed.map(|file| file.expect("a file").file_name()).collect();
        files.sort();
        fs::remove_dir_all(folder).expect("removed");
        assert_eq!(files, ["_buoy", "buoy-float.1", "buoy.1", "buoy.bash", "buoy.fish"]);
    }
}
