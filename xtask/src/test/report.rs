//! The outcome of each test, and the summary for people at the end.

use std::time::Duration;

/// How a test ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TestOutcome {
    Passed,
    Failed,
    Skipped,
}

/// A test that was run.
pub(super) struct Test {
    /// Its program and its path in there.
    pub(super) name: String,
    pub(super) outcome: TestOutcome,
    pub(super) took: Duration,
}

/// All tests that were run.
#[derive(Default)]
pub(super) struct Report {
    pub(super) tests: Vec<Test>,
}

impl Report {
    pub(super) fn is_empty(&self) -> bool {
        self.tests.is_empty()
    }

    pub(super) fn failed(&self) -> usize {
        self.count(TestOutcome::Failed)
    }

    fn count(&self, outcome: TestOutcome) -> usize {
        self.tests.iter().filter(|test| test.outcome == outcome).count()
    }

    /// The slowest tests, those that failed, and the sum.
    pub(super) fn print(&self) {
        let mut slowest: Vec<&Test> = self.tests.iter().collect();
        slowest.sort_by_key(|test| std::cmp::Reverse(test.took));
        println!("\nthe slowest tests:");
        for test in slowest.iter().take(10) {
            println!("{:8.1} s  {}", test.took.as_secs_f64(), test.name);
        }
        let failed = self.tests.iter().filter(|test| test.outcome == TestOutcome::Failed);
        for test in failed {
            println!("FAILED: {}", test.name);
        }
        let (passed, failed) = (self.count(TestOutcome::Passed), self.failed());
        println!("{passed} passed, {failed} failed, {} skipped", self.count(TestOutcome::Skipped));
    }
}
