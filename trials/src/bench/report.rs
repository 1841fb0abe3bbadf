//! From samples to rows: medians over the runs, ratios within each run, and whether the target was met.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One figure of one run.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    metric: String,
    value: f64,
    unit: &'static str,
    against: Option<(String, f64)>,
    target: Option<Target>,
    over: Over,
}

/// How several runs become one figure.
#[derive(Clone, Copy, Debug)]
enum Over {
    Median,
    Largest,
}

/// A bound that a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The ratio to the baseline, at least.
    RatioAtLeast(f64),
    /// The ratio to the baseline, at most.
    RatioAtMost(f64),
    /// The figure itself, at most.
    AtMost(f64),
    /// The figure minus the baseline's, at most.
    MoreByAtMost(f64),
}

impl Sample {
    pub(crate) fn new(metric: impl Into<String>, value: f64, unit: &'static str) -> Sample {
        Sample { metric: metric.into(), value, unit, against: None, target: None, over: Over::Median }
    }

    /// The baseline, measured in the same run, in the same unit.
    pub(crate) fn against(mut self, name: impl Into<String>, value: f64) -> Sample {
        self.against = Some((name.into(), value));
        self
    }

    pub(crate) fn target(mut self, target: Target) -> Sample {
        self.target = Some(target);
        self
    }

    /// Of several runs the largest is told, for what must not be exceeded even once.
    pub(crate) fn at_worst(mut self) -> Sample {
        self.over = Over::Largest;
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.against.as_ref().map(|(_, baseline)| self.value / baseline)
    }
}

/// One figure over all runs, as it stands in the result file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportRow {
    /// Which scenario; `machine` for what it ran on.
    pub scenario: String,
    /// Which figure of it.
    pub metric: String,
    /// The median over the runs, or the largest of what must not be exceeded even once.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The baseline: its name and its median, in the same unit.
    pub against: Option<String>,
    /// The same of the runs' ratios to the baseline.
    pub ratio: Option<f64>,
    /// The bound to reach.
    pub target: Option<String>,
    /// Whether it was reached.
    pub met: Option<bool>,
    /// How many runs there were.
    pub runs: usize,
}

/// Samples of several runs become one row for each metric, in the order of their first appearance.
pub(crate) fn rows_of(scenario: &str, samples: &[Sample]) -> Vec<ReportRow> {
    let mut metrics: Vec<&str> = Vec::new();
    for sample in samples {
        if !metrics.contains(&sample.metric.as_str()) {
            metrics.push(&sample.metric);
        }
    }
    let of =
        |metric: &&str| samples.iter().filter(move |sample| sample.metric == **metric).collect::<Vec<_>>();
    metrics.iter().map(of).filter_map(|samples| row(scenario, &samples)).collect()
}

fn row(scenario: &str, samples: &[&Sample]) -> Option<ReportRow> {
    let first = samples.first()?;
    let over = |values: &mut dyn Iterator<Item = f64>| match first.over {
        Over::Median => median(values),
        Over::Largest => values.max_by(f64::total_cmp),
    };
    let value = over(&mut samples.iter().map(|sample| sample.value))?;
    let baseline =
        median(samples.iter().filter_map(|sample| sample.against.as_ref().map(|(_, value)| *value)));
    let ratio = over(&mut samples.iter().filter_map(|sample| sample.ratio()));
    let met = first.target.and_then(|target| match target {
        Target::RatioAtLeast(least) => ratio.map(|ratio| ratio >= least),
        Target::RatioAtMost(most) => ratio.map(|ratio| ratio <= most),
        Target::AtMost(most) => Some(value <= most),
        Target::MoreByAtMost(most) => baseline.map(|baseline| value - baseline <= most),
    });
    Some(ReportRow {
        scenario: scenario.to_owned(),
        metric: first.metric.clone(),
        value,
        unit: first.unit.to_owned(),
        against: first
            .against
            .as_ref()
            .zip(baseline)
            .map(|((name, _), value)| format!("{name}: {}", figure(value))),
        ratio,
        target: first.target.map(|target| target.words(first.unit)),
        met,
        runs: samples.len(),
    })
}

impl Target {
    fn words(self, unit: &str) -> String {
        match self {
            Target::RatioAtLeast(least) => format!("≥ {least} ×"),
            Target::RatioAtMost(most) => format!("≤ {most} ×"),
            Target::AtMost(most) => format!("≤ {} {unit}", figure(most)),
            Target::MoreByAtMost(most) => format!("within {} {unit}", figure(most)),
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// Three digits that matter, and separators of thousands.
pub(crate) fn figure(value: f64) -> String {
    if value.abs() < 100.0 {
        let decimals = if value.abs() < 1.0 { 3 } else { 1 };
        let text = format!("{value:.decimals$}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |rest| ("-", rest));
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// The rows for people.
pub(crate) fn table<'a>(rows: impl Iterator<Item = &'a ReportRow>) -> String {
    let mut text = String::new();
    for row in rows {
        let mark = match row.met {
            Some(true) => "✓",
            Some(false) => "✗",
            None => " ",
        };
        let ratio = row.ratio.map(|ratio| format!("{ratio:.2} ×")).unwrap_or_default();
        let value = format!("{} {}", figure(row.value), row.unit);
        let rest = [row.against.as_deref().unwrap_or_default(), row.target.as_deref().unwrap_or_default()];
        let _ = writeln!(
            text,
            "{mark} {:<13} {:<44} {value:>20} {ratio:>9}  {:<40} {}",
            row.scenario, row.metric, rest[0], rest[1]
        );
    }
    text
}

impl ReportRow {
    /// The cells that say what it is, as a row of a table in Markdown begins.
    pub(crate) fn cells(&self) -> String {
        format!("| `{}` | {} |", self.scenario, self.metric)
    }

    /// It as a row of a table in Markdown: what it is, the figure, the baseline, the ratio, the target.
    pub(crate) fn markdown(&self) -> String {
        let (cells, value, unit) = (self.cells(), figure(self.value), &self.unit);
        let against = self.against.as_deref().unwrap_or_default();
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let target = self.target.as_deref().unwrap_or_default();
        let missed = if self.met == Some(false) { " (missed)" } else { "" };
        format!("{cells} {value} {unit} | {against} | {ratio} | {target}{missed} |")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_within_each_run_before_their_median() {
        let run = |value, baseline| Sample::new("rate", value, "/s").against("bare", baseline);
        let samples = [run(10.0, 10.0), run(90.0, 100.0), run(4.0, 5.0)];
        let samples = samples.map(|sample| sample.target(Target::RatioAtLeast(0.9)));
        let rows = rows_of("x", &samples);
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].value, rows[0].ratio, rows[0].met), (10.0, Some(0.9), Some(true)));
        assert_eq!(rows[0].against.as_deref(), Some("bare: 10"));
    }

    #[test]
    fn what_must_not_be_exceeded_even_once_is_reported_at_its_worst() {
        let run = |value| Sample::new("longest", value, "ms").against("bound", 10.0);
        let samples = [9.0, 16.0, 11.0].map(|value| run(value).target(Target::RatioAtMost(1.5)).at_worst());
        let rows = rows_of("x", &samples);
        assert_eq!((rows[0].value, rows[0].ratio, rows[0].met), (16.0, Some(1.6), Some(false)));
    }

    #[test]
    fn a_limit_of_the_figure_itself_needs_no_baseline() {
        let sample = Sample::new("memory", 9.0, "KiB").target(Target::AtMost(8.0));
        assert_eq!(rows_of("x", &[sample])[0].met, Some(false));
    }

    #[test]
    fn figures_are_short_and_grouped() {
        let shown = [0.0, 0.1234, 12.34, 10.0, 123.4, 1234.0, 12_345_678.0, -1234.0].map(figure);
        assert_eq!(shown, ["0", "0.123", "12.3", "10", "123", "1,234", "12,345,678", "-1,234"]);
    }
}
