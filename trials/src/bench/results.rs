//! What outlives a run: the result file, the chart, and the tables of a document. Scenarios that a run does not measure
//! keep their earlier rows, so that one can be measured again by itself. Owns no state; `run` calls it after each
//! scenario.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{chart, chart_ids, report};
use crate::bench::Row;
use crate::{Failure, Result};

/// Begins a table in the document; the names of its scenarios follow, then ` -->`.
const BEGIN: &str = "<!-- bench:";
/// Ends it.
const END: &str = "<!-- bench end -->";

/// Where results go.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The rows, as JSON.
    pub json: Option<PathBuf>,
    /// The chart, as SVG; that of `ids` lies beside it, under its name and `-ids`.
    pub chart: Option<PathBuf>,
    /// A Markdown file whose marked tables are renewed.
    pub tables: Option<PathBuf>,
}

impl Files {
    /// The rows of the result file.
    ///
    /// # Errors
    ///
    /// One that is there but cannot be read, so that it is not overwritten.
    pub(super) fn earlier(&self) -> Result<Vec<Row>> {
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
    pub(super) fn save(&self, rows: &[Row]) -> Result<()> {
        if let Some(path) = &self.json {
            write(path, &(serde_json::to_string_pretty(rows)? + "\n"))?;
        }
        if let Some(path) = &self.chart {
            write(path, &chart::draw(rows))?;
            if let Some(drawn) = chart_ids::draw(rows) {
                write(&beside(path, "ids"), &drawn)?;
            }
        }
        if let Some(path) = &self.tables {
            let text = fs::read_to_string(path)
                .map_err(|error| Failure::new(format!("{} cannot be read: {error}", path.display())))?;
            write(path, &renewed(&text, rows)?)?;
        }
        Ok(())
    }
}

/// The rows of this run, and the earlier ones of what it did not measure, in the order of `scenarios`.
pub(super) fn merged(earlier: &[Row], fresh: &[Row], scenarios: &[&str]) -> Vec<Row> {
    let of = |rows: &[Row], name: &str| -> Vec<Row> {
        rows.iter().filter(|row| row.scenario == name).cloned().collect()
    };
    let newest = |name: &&str| match of(fresh, name) {
        none if none.is_empty() => of(earlier, name),
        rows => rows,
    };
    scenarios.iter().flat_map(newest).collect()
}

/// The text with its marked tables made anew.
fn renewed(text: &str, rows: &[Row]) -> Result<String> {
    let mut parts = text.split(BEGIN);
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let open = || Failure::new(format!("a table that begins with {BEGIN} does not end with {END}"));
        let (names, rest) = part.split_once("-->").ok_or_else(open)?;
        let (_, after) = rest.split_once(END).ok_or_else(open)?;
        let names: Vec<&str> = names.split_whitespace().collect();
        let table = report::markdown(rows.iter().filter(|row| names.contains(&row.scenario.as_str())));
        made += &format!("{BEGIN} {} -->\n{table}{END}{after}", names.join(" "));
    }
    Ok(made)
}

/// The file with this ending of its name beside `path`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let part = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!("{}-{ending}.{}", part(path.file_stem()), part(path.extension())))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|e| Failure::new(format!("{} cannot be written: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Sample, rows_of};

    fn rows(scenario: &str, value: f64) -> Vec<Row> {
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
    fn marked_tables_are_renewed_and_the_text_around_them_stays() {
        let text = "one\n<!-- bench: b a -->\nold\n<!-- bench end -->\ntwo\n";
        let made = renewed(text, &[rows("a", 1.0), rows("x", 2.0)].concat()).unwrap();
        assert!(
            made.starts_with("one\n<!-- bench: b a -->\n| scenario |")
                && made.ends_with("<!-- bench end -->\ntwo\n")
        );
        assert!(made.contains("| `a` | rate | 1 /s |") && !made.contains("old") && !made.contains("`x`"));
        assert_eq!(renewed(&made, &[rows("a", 1.0), rows("x", 2.0)].concat()).unwrap(), made);
        assert!(renewed("<!-- bench: a -->", &[]).is_err());
    }

    #[test]
    fn a_chart_beside_another_has_its_name_and_an_ending() {
        assert_eq!(beside(Path::new("docs/bench.svg"), "ids"), Path::new("docs/bench-ids.svg"));
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
