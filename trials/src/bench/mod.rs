//! `bench`: each scenario measured several times against baselines in the same run, medians told.
//!
//! A scenario lives in its own file under `scenario`, all of the same shape: `prepare` once, then
//! `measure` for each run, which answers samples with their baselines measured beside them.

mod baseline;
mod machine;
mod report;
mod results;
mod scenario;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use indicatif::{ProgressBar, ProgressStyle};

pub use report::ReportRow;
use report::{Sample, rows_of, table};
pub use results::Files;
use results::merged;
use scenario::Scenario;

use crate::server::Server;
use crate::{Failure, Result, program};

/// The scenarios to measure, and how.
#[derive(Clone, Debug)]
pub struct BenchPlan {
    /// Names of scenarios; empty = all that take less than an hour.
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
    let binary = program("tidemark")?;
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

/// Is a part of a measurement that has a process of its own, until that is killed: the server of a baseline, or the client that floods.
pub async fn be(part: &[String]) -> Result<()> {
    match part.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["echo"] => baseline::echo::serve().await,
        ["grpc"] => baseline::grpc::serve().await,
        ["files", folder] => baseline::files::serve(Path::new(folder)).await,
        ["table"] => baseline::table::http::serve(None).await,
        ["table", file] => baseline::table::http::serve(Some(Path::new(file))).await,
        ["flood", way, file] => scenario::flood::flood(way, Path::new(file)).await,
        _ => Err(Failure::new(format!("no measurement has a part {}", part.join(" ")))),
    }
}

/// Runs tasks at the same time, which do something so many times in all; how often a second.
pub(crate) async fn rate<T>(times: usize, tasks: impl IntoIterator<Item = T>) -> Result<f64>
where
    T: Future<Output = Result<()>> + Send + 'static,
{
    let began = Instant::now();
    for done in try_join_all(tasks.into_iter().map(tokio::spawn)).await? {
        done?;
    }
    Ok(times as f64 / began.elapsed().as_secs_f64())
}

/// The most memory that a server ever had.
pub(crate) fn peak_memory(metric: impl Into<String>, server: &Server) -> Result<Sample> {
    Ok(Sample::new(metric, mib(server.peak_memory()?), "MiB"))
}

pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn choose(names: &[String]) -> Result<Vec<&'static Scenario>> {
    let find = |name: &String| {
        scenario::ALL.iter().find(|each| each.name == *name).ok_or_else(|| {
            let known: Vec<_> = scenarios().map(|(name, _)| name).collect();
            Failure::new(format!("there is no scenario {name}; there are: {}", known.join(", ")))
        })
    };
    if names.is_empty() {
        Ok(scenario::ALL.iter().filter(|each| !each.takes_hours).collect())
    } else {
        names.iter().map(find).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_scenario_is_reported_with_the_known_ones() {
        let error = choose(&["sned".to_owned()]).err().expect("unknown").to_string();
        assert!(error.contains("sned") && error.contains("send-latency"), "{error}");
        let all = choose(&[]).expect("all");
        assert_eq!(all.len(), scenario::ALL.len() - 1, "one takes an hour");
        assert_eq!(choose(&["retention-periods".to_owned()]).expect("named").len(), 1);
    }
}
