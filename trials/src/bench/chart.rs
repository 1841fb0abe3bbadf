//! The chart for documents: how far each scenario is from its target, as a small SVG that suits light and dark pages.

use std::fmt::Write as _;

use super::report::Row;

const WIDTH: f64 = 840.0;
const LEFT: f64 = 330.0;
/// Room for the figures behind the longest bar.
const RIGHT: f64 = 190.0;
const LINE: f64 = 26.0;
/// Bars end here: what is ten times better than asked for needs no longer bar.
const MOST: f64 = 3.0;

/// Draws one bar for each scenario: its row that comes off worst against its target.
///
/// Bars show the ratio divided by the target where more is better, and the other way round where less is: right of
/// the line at 1 the target is met.
pub fn draw(rows: &[Row]) -> String {
    let bars = worst_of_each(rows);
    let height = LINE * bars.len() as f64 + 64.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Measured figures against their targets\">\n{STYLE}\n"
    );
    let _ = writeln!(
        svg,
        "<text x=\"8\" y=\"20\" class=\"title\">Each scenario's worst figure against its target: longer is better</text>"
    );
    for (at, bar) in bars.iter().enumerate() {
        let y = 34.0 + LINE * at as f64;
        let width = (WIDTH - LEFT - RIGHT) * bar.score.min(MOST) / MOST;
        let class = if bar.met { "met" } else { "missed" };
        let (label, figure) = (escape(&bar.label), escape(&bar.figure));
        let _ =
            writeln!(svg, "<text x=\"{}\" y=\"{}\" class=\"label\">{label}</text>", LEFT - 10.0, y + 15.0);
        let _ = writeln!(
            svg,
            "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{width:.1}\" height=\"18\" rx=\"3\" class=\"{class}\"/>"
        );
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{}\">{figure}</text>", LEFT + width + 8.0, y + 14.0);
    }
    let x = LEFT + (WIDTH - LEFT - RIGHT) / MOST;
    let _ = writeln!(
        svg,
        "<line x1=\"{x:.1}\" y1=\"30\" x2=\"{x:.1}\" y2=\"{}\" class=\"goal\"/>",
        height - 26.0
    );
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" class=\"goal-name\">target</text>", height - 10.0);
    svg.push_str("</svg>\n");
    svg
}

const STYLE: &str = "<style>\n\
    text { font: 13px system-ui, sans-serif; fill: #24292f }\n\
    .title { font-weight: 600 } .label { text-anchor: end } .goal-name { text-anchor: middle }\n\
    .met { fill: #2f7d5b } .missed { fill: #c4622d } .goal { stroke: #6e7781; stroke-dasharray: 4 3 }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #d8dee4 } .met { fill: #57b88a } .missed { fill: #e58a57 } .goal { stroke: #8b949e }\n\
    }\n</style>";

struct Bar {
    scenario: String,
    label: String,
    figure: String,
    score: f64,
    met: bool,
}

fn bar(row: &Row) -> Option<Bar> {
    let (target, met) = (row.target.as_deref()?, row.met?);
    let mut words = target.split_whitespace();
    let relation = words.next()?;
    let wanted: f64 = words.next()?.replace(',', "").parse().ok()?;
    let value = format!("{} {} ({target})", super::report::figure(row.value), row.unit);
    let (reached, figure) = match row.ratio {
        Some(ratio) if target.ends_with('×') => (ratio, format!("{ratio:.2} × ({target})")),
        // What it is more than the baseline by.
        Some(ratio) if relation == "within" => (row.value - row.value / ratio, value),
        _ => (row.value, value),
    };
    let score = match relation {
        "≥" => reached / wanted,
        // Nothing was allowed, and nothing is what it was: as good as it gets.
        _ if reached <= 0.0 => MOST,
        _ => wanted / reached,
    };
    let scenario = row.scenario.clone();
    Some(Bar { label: format!("{scenario}: {}", row.metric), scenario, figure, score, met })
}

/// In the order of the rows.
fn worst_of_each(rows: &[Row]) -> Vec<Bar> {
    let mut worst: Vec<Bar> = Vec::new();
    for bar in rows.iter().filter_map(bar) {
        match worst.iter_mut().find(|other| other.scenario == bar.scenario) {
            Some(other) if bar.score < other.score => *other = bar,
            Some(_) => {}
            None => worst.push(bar),
        }
    }
    worst
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: Option<f64>, value: f64, target: &str, met: bool) -> Row {
        Row {
            scenario: "send".to_owned(),
            metric: "a < b".to_owned(),
            value,
            unit: "KiB".to_owned(),
            against: None,
            ratio,
            target: Some(target.to_owned()),
            met: Some(met),
            runs: 3,
        }
    }

    #[test]
    fn more_and_less_are_both_drawn_as_longer_is_better() {
        let score = |row: &Row| bar(row).expect("a bar").score;
        assert!((score(&row(Some(1.2), 0.0, "≥ 0.6 ×", true)) - 2.0).abs() < 1e-9);
        assert!((score(&row(Some(2.5), 0.0, "≤ 5 ×", true)) - 2.0).abs() < 1e-9);
        assert!((score(&row(None, 16.0, "≤ 8 KiB", false)) - 0.5).abs() < 1e-9);
        assert!(score(&row(None, 0.0, "≤ 0 reads", true)) >= MOST);
        assert!((score(&row(Some(2.0), 100.0, "within 100 ms", true)) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_scenario_is_shown_by_its_worst_row() {
        let rows = [row(Some(1.2), 0.0, "≥ 0.6 ×", true), row(Some(0.5), 0.0, "≥ 0.6 ×", false)];
        let bars = worst_of_each(&rows);
        assert_eq!(bars.len(), 1);
        assert!(!bars[0].met);
    }

    #[test]
    fn a_chart_is_well_formed_and_marks_what_was_missed() {
        let svg = draw(&[row(Some(0.5), 0.0, "≥ 0.6 ×", false)]);
        assert!(svg.contains("class=\"missed\"") && svg.contains("a &lt; b") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }
}
