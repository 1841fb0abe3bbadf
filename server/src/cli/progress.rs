//! The bar of the commands that take long; drawn on standard error, and only where that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};

const TEMPLATE: &str = "{msg:9} {wide_bar} {human_pos}/{human_len} {eta:>4}";

/// A bar without a length yet.
pub(super) fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template(TEMPLATE).expect("the template is one");
    ProgressBar::new(0).with_style(style)
}
