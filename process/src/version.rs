//! Which version a program is: what it says to `--version`, in the first line of its log, in its metrics and to `/health`.

use std::fmt;

use crate::usage;

/// The version of the project, and the commit that a program was built from. `main` makes it and hands it on; the default belongs to no
/// commit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Version {
    commit: &'static str,
    date: &'static str,
}

impl Version {
    /// Of a program whose `main.rs` says `commit!()`, which gives the short hash and the date; both empty where nobody knows.
    pub const fn of((commit, date): (&'static str, &'static str)) -> Self {
        Self { commit, date }
    }

    /// The version of the project: `0.1.0`.
    pub const fn number(self) -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    /// The short hash of the commit, or `unknown`.
    pub const fn commit(self) -> &'static str {
        if self.commit.is_empty() { "unknown" } else { self.commit }
    }

    /// The metric `PROGRAM_build_info` and those of [`usage`], as lines that Prometheus reads.
    pub fn metrics(self, program: &str) -> String {
        let (number, commit) = (self.number(), self.commit());
        format!(
            "# HELP {program}_build Version and commit of the program.\n# TYPE {program}_build info\n\
             {program}_build_info{{version=\"{number}\",commit=\"{commit}\"}} 1\n{}",
            usage()
        )
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        match self.commit {
            "" => write!(f, "{number} (commit unknown)"),
            commit => write!(f, "{number} ({commit} {})", self.date),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_says_its_commit_or_that_nobody_knows_it() {
        let number = env!("CARGO_PKG_VERSION");
        let known = Version::of(("0bd88b1f", "2026-11-26"));
        assert_eq!(known.to_string(), format!("{number} (0bd88b1f 2026-11-26)"));
        let line = format!("seqsvr_build_info{{version=\"{number}\",commit=\"0bd88b1f\"}} 1");
        assert!(known.metrics("seqsvr").lines().any(|shown| shown == line));
        assert_eq!(Version::of(("", "")).to_string(), format!("{number} (commit unknown)"));
        assert_eq!(Version::default().commit(), "unknown");
    }
}
