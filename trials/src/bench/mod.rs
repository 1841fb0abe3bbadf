//! `bench`: each scenario measured several times against baselines in the same run, medians told.
//!
//! A scenario lives in its own file under `scenario`, all of the same shape: `prepare` once, then
//! `measure` for each run, which answers samples with their baselines measured beside them.

mod baseline;
mod http;
mod machine;
mod report;
mod results;
mod scenario;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

pub use report::ReportRow;
use report::{rows_of, table};
pub use results::Files;
use results::merged;
use scenario::Scenario;

use crate::{Failure, Result, server};

/// The scenarios to measure, and how.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Names of scenarios; empty = all.
    pub scenarios: Vec<String>,
    /// Runs of each, at least 1; medians are told.
    pub runs: usize,
    /// A tenth of the work: shows that it works, its numbers mean little.
    pub quick: bool,
    /// Where the results go.
    pub files: Files,
}

/// The context of a scenario.
pub(crate) struct Context {
    /// The server's program.
    pub(crate) binary: PathBuf,
    /// A tenth of the work.
    pub(crate) quick: bool,
    /// Where it may put files; on the disk whose speed matters.
    pub(crate) folder: PathBuf,
}

impl Context {
    /// `full`, or a tenth of it in a quick run.
    pub(crate) fn scaled(&self, full: usize) -> usize {
        if self.quick { (full / 10).max(1) } else { full }
    }

    /// The program of the sequence service, which lies beside the server's.
    pub(crate) fn sequence_binary(&self) -> Result<PathBuf> {
        let path = self.binary.with_file_name("seqsvr");
        match path.is_file() {
            true => Ok(path),
            false => {
                Err(Failure::new(format!("{} is not there; `cargo xtask bench` builds it", path.display())))
            }
        }
    }

    /// A fresh folder.
    pub(crate) fn fresh(&self) -> Result<tempfile::TempDir> {
        Ok(tempfile::Builder::new().prefix("trial-").tempdir_in(&self.folder)?)
    }
}

/// Names and purposes of all scenarios, in the order in which they run.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    scenario::ALL.iter().map(|each| (each.name, each.about))
}

/// Carries out a plan, prints the table, and answers the rows.
pub async fn run(plan: &BenchPlan) -> Result<Vec<ReportRow>> {
    let chosen = choose(&plan.scenarios)?;
    let earlier = plan.files.earlier()?;
    let order: Vec<&str> = [machine::NAME].into_iter().chain(scenarios().map(|(name, _)| name)).collect();
    // Beside the program: /tmp may be memory, where syncing costs nothing.
    let binary = server::beside_this_program()?;
    let folder = binary.with_file_name("trials");
    fs::create_dir_all(&folder)?;
    let context = Context { binary, quick: plan.quick, folder };
    let runs = plan.runs.max(1);
    let bar = ProgressBar::new((chosen.len() * runs) as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed_precise} {msg}")?;
    bar.set_style(style);
    bar.enable_steady_tick(Duration::from_millis(250));
    let mut rows = machine::rows(plan.quick);
    for scenario in chosen {
        bar.set_message(format!("{}: getting ready", scenario.name));
        let samples = (scenario.run)(&context, runs, &bar).await;
        let samples = samples.map_err(|e| Failure::new(format!("{}: {e}", scenario.name)))?;
        rows.extend(rows_of(scenario.name, &samples));
        // Told as soon as it is known: a whole run takes minutes.
        bar.suspend(|| println!("{}", table(rows.iter().filter(|row| row.scenario == scenario.name))));
        plan.files.save(&merged(&earlier, &rows, &order))?;
    }
    bar.finish_and_clear();
    Ok(rows)
}

/// Serves the baseline's echo until the process is killed.
pub async fn serve_echo() -> Result<()> {
    baseline::echo::serve().await
}

/// Serves the bare gRPC baseline until the process is killed.
pub async fn serve_grpc() -> Result<()> {
    baseline::grpc::serve().await
}

/// Serves the bare baseline of tables until the process is killed; with `file`, rows are appended to it.
pub async fn serve_table(file: Option<&Path>) -> Result<()> {
    baseline::table::http::serve(file).await
}

/// Floods in the way of this name, until the process is killed; whom and as whom stands in `file`.
pub async fn flood(way: &str, file: &Path) -> Result<()> {
    scenario::flood::flood(way, file).await
}

fn choose(names: &[String]) -> Result<Vec<&'static Scenario>> {
    let find = |name: &String| {
        scenario::ALL.iter().find(|each| each.name == *name).ok_or_else(|| {
            let known: Vec<_> = scenarios().map(|(name, _)| name).collect();
            Failure::new(format!("there is no scenario {name}; there are: {}", known.join(", ")))
        })
    };
    if names.is_empty() { Ok(scenario::ALL.iter().collect()) } else { names.iter().map(find).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scenario_is_reported_with_the_known_ones() {
        let error = choose(&["sned".to_owned()]).err().expect("unknown").to_string();
        assert!(error.contains("sned") && error.contains("send-latency"), "{error}");
        assert_eq!(choose(&[]).expect("all").len(), scenario::ALL.len());
    }
}
