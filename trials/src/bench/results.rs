//! The lasting results of a run: the result file, and the tables of a document. Scenarios that a run does not measure keep their
//! earlier rows, so that one can be measured again by itself. Owns no state; `run` calls it after each scenario.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::report::ReportRow;
use crate::{Failure, Result};

/// Where results go.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The rows, as JSON.
    pub json: Option<PathBuf>,
    /// A Markdown file, of whose tables the rows are renewed.
    pub tables: Option<PathBuf>,
}

impl Files {
    /// The rows of the result file.
    ///
    /// # Errors
    ///
    /// One that is there but cannot be read, so that it is not overwritten.
    pub(super) fn earlier(&self) -> Result<Vec<ReportRow>> {
        let Some(path) = &self.json else { return Ok(Vec::new()) };
        let unreadable =
            |why: String| Failure::new(format!("{} cannot be gone on with: {why}", path.display()));
        match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).map_err(|error| unreadable(error.to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Writes everything that is wanted.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub(super) fn save(&self, rows: &[ReportRow]) -> Result<()> {
        if let Some(path) = &self.json {
            write(path, &(serde_json::to_string_pretty(rows)? + "\n"))?;
        }
        if let Some(path) = &self.tables {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))?;
            write(path, &renewed(&text, rows))?;
        }
        Ok(())
    }
}

/// The rows of this run, and the earlier ones of what it did not measure, in the order of `scenarios`.
pub(super) fn merged(earlier: &[ReportRow], fresh: &[ReportRow], scenarios: &[&str]) -> Vec<ReportRow> {
    let of = |rows: &[ReportRow], name: &str| -> Vec<ReportRow> {
        rows.iter().filter(|row| row.scenario == name).cloned().collect()
    };
    let newest = |name: &&str| match of(fresh, name) {
        none if none.is_empty() => of(earlier, name),
        rows => rows,
    };
    scenarios.iter().flat_map(newest).collect()
}

/// The text, where each row of a table that begins with a scenario and a metric of `rows` has their figures.
fn renewed(text: &str, rows: &[ReportRow]) -> String {
    let fresh = |line: &str| rows.iter().find(|row| line.starts_with(&row.cells())).map(ReportRow::markdown);
    text.lines().map(|line| fresh(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| Failure::new(format!("{} cannot be written: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Sample, rows_of};

    fn rows(scenario: &str, value: f64) -> Vec<ReportRow> {
        rows_of(scenario, &[Sample::new("rate", value, "/s")])
    }

    #[test]
    fn what_was_not_measured_again_keeps_its_rows_and_its_place() {
        let earlier = [rows("a", 1.0), rows("b", 2.0), rows("gone", 3.0)].concat();
        let merged = merged(&earlier, &[rows("c", 5.0), rows("b", 4.0)].concat(), &["a", "b", "c"]);
        let reported: Vec<_> = merged.iter().map(|row| (row.scenario.as_str(), row.value)).collect();
        assert_eq!(reported, [("a", 1.0), ("b", 4.0), ("c", 5.0)]);
    }

    #[test]
    fn the_rows_that_a_page_has_are_renewed_and_the_rest_stays() {
        let text = "one\n| `a` | rate | old |\n| `a` | rate of more | old |\n| `b` | rate | old |\n";
        let made = renewed(text, &[rows("a", 1.0), rows("x", 2.0)].concat());
        let wanted =
            "one\n| `a` | rate | 1 /s |  |  |  |\n| `a` | rate of more | old |\n| `b` | rate | old |\n";
        assert_eq!(made, wanted);
    }

    #[test]
    fn the_page_says_what_the_result_file_does() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let read = |name: &str| fs::read_to_string(docs.join(name)).unwrap();
        let (page, rows) =
            (read("BENCHMARKS.md"), serde_json::from_str::<Vec<ReportRow>>(&read("bench.json")).unwrap());
        assert_eq!(renewed(&page, &rows), page, "renew it: cargo xtask bench --tables");
        let all = super::super::scenario::ALL;
        let measured: Vec<&str> = all.iter().filter(|each| !each.takes_hours).map(|each| each.name).collect();
        for row in page.lines().filter(|line| line.starts_with("| `")) {
            assert!(rows.iter().any(|known| row.starts_with(&known.cells())), "bench.json has no {row}");
        }
        for name in measured {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name} is missing");
        }
    }

    #[test]
    fn a_result_file_that_cannot_be_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files { json: Some(folder.path().join("rows.json")), ..Files::default() };
        assert_eq!(files.earlier().unwrap(), []);
        files.save(&rows("a", 1.0)).unwrap();
        assert_eq!(files.earlier().unwrap(), rows("a", 1.0));
        fs::write(files.json.as_ref().unwrap(), "{").unwrap();
        assert!(files.earlier().unwrap_err().to_string().contains("rows.json"));
    }
}
