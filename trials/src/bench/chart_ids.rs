//! The chart of `ids` for documents: messages a second by the number of senders, for each way to assign ids. A small SVG
//! that suits light and dark pages.

use std::fmt::Write as _;

use super::report::{Row, figure};
use super::scenario::ids::{MODES, SPREADS, metric, senders};

const WIDTH: f64 = 840.0;
/// Of one panel with its title and its numbers of senders.
const PANEL: f64 = 230.0;
const TOP: f64 = 64.0;
/// Of the highest bar.
const HIGHEST: f64 = 150.0;
const BAR: f64 = 50.0;
const GROUP: f64 = 200.0;
const LEFT: f64 = 36.0;
const CLASSES: [&str; MODES.len()] = ["first", "second", "third"];

const STYLE: &str = "<style>\n\
    text { font: 13px system-ui, sans-serif; fill: #24292f } .figure { font-size: 11px }\n\
    .title { font-weight: 600 } .middle { text-anchor: middle } .axis { stroke: #6e7781 }\n\
    .first { fill: #8250b8 } .second { fill: #2f7d5b } .third { fill: #2f6fb3 }\n\
    @media (prefers-color-scheme: dark) {\n\
    text { fill: #d8dee4 } .axis { stroke: #8b949e }\n\
    .first { fill: #b08be0 } .second { fill: #57b88a } .third { fill: #6aa9e8 }\n\
    }\n</style>";

/// Draws a panel for each spread; nothing where `ids` was not measured.
pub fn draw(rows: &[Row]) -> Option<String> {
    let value = |mode: &str, spread: &str, senders: usize| {
        let wanted = metric(mode, spread, senders);
        rows.iter().find(|row| row.scenario == "ids" && row.metric == wanted).map(|row| row.value)
    };
    let each = || SPREADS.iter().flat_map(|spread| senders().map(move |senders| (spread, senders)));
    let all = each().flat_map(|(spread, senders)| MODES.map(|mode| value(mode, spread, senders)));
    let most = all.flatten().max_by(f64::total_cmp).filter(|most| *most > 0.0)?;

    let height = TOP + PANEL * SPREADS.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Messages a second by who assigns the ids\">\n{STYLE}\n\
         <text x=\"8\" y=\"20\" class=\"title\">Messages a second, each sender with one in flight</text>\n"
    );
    for (at, (mode, class)) in MODES.iter().zip(CLASSES).enumerate() {
        let x = 8.0 + 180.0 * at as f64;
        let _ =
            writeln!(svg, "<rect x=\"{x}\" y=\"32\" width=\"14\" height=\"14\" rx=\"3\" class=\"{class}\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"44\">{mode}</text>", x + 20.0);
    }
    for (panel, spread) in SPREADS.iter().enumerate() {
        let floor = TOP + PANEL * panel as f64 + 25.0 + HIGHEST;
        let _ = writeln!(
            svg,
            "<text x=\"8\" y=\"{}\" class=\"title\">to {spread}</text>",
            TOP + PANEL * panel as f64 + 16.0
        );
        for (group, senders) in senders().enumerate() {
            let x = LEFT + GROUP * group as f64;
            for (at, (mode, class)) in MODES.iter().zip(CLASSES).enumerate() {
                let Some(value) = value(mode, spread, senders) else { continue };
                let (x, high) = (x + (BAR + 4.0) * at as f64, HIGHEST * value / most);
                let y = floor - high;
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y:.1}\" width=\"{BAR}\" height=\"{high:.1}\" class=\"{class}\"/>"
                );
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{:.1}\" class=\"figure middle\">{}</text>",
                    x + BAR / 2.0,
                    y - 4.0,
                    figure(value)
                );
            }
            let middle = x + (BAR * 3.0 + 8.0) / 2.0;
            let name = if senders == 1 { "1 sender".to_owned() } else { format!("{senders} senders") };
            let _ =
                writeln!(svg, "<text x=\"{middle}\" y=\"{}\" class=\"middle\">{name}</text>", floor + 18.0);
        }
        let _ = writeln!(
            svg,
            "<line x1=\"8\" y1=\"{floor}\" x2=\"{}\" y2=\"{floor}\" class=\"axis\"/>",
            WIDTH - 8.0
        );
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::{Sample, rows_of};

    #[test]
    fn each_figure_is_a_bar_and_nothing_is_drawn_without_any() {
        assert_eq!(draw(&[]), None);
        let samples: Vec<Sample> = SPREADS
            .iter()
            .flat_map(|spread| senders().map(move |senders| (spread, senders)))
            .flat_map(|(spread, senders)| {
                MODES.map(|mode| Sample::new(metric(mode, spread, senders), 1_234.0, "/s"))
            })
            .collect();
        let svg = draw(&rows_of("ids", &samples)).expect("drawn");
        // The legend has a bar for each mode, too.
        assert_eq!(svg.matches("<rect").count(), samples.len() + MODES.len());
        assert_eq!(svg.matches("1,234").count(), samples.len());
        assert!(svg.ends_with("</svg>\n"));
    }
}
