//! Reads: drawn, as they are sent, and as the model answers them.

use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;
use tidemark_table::wire::proto;

use super::rules::{Cells, Test};
use super::{column, names};

/// A read of a row, or of rows.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// Empty: all.
    pub(super) columns: Vec<&'static str>,
    /// The first column, and the one after the last.
    between: (Option<&'static str>, Option<&'static str>),
    times: Times,
    /// `None`: all, where times are named.
    pub(super) versions: Option<usize>,
    pub(super) shows: Shows,
}

/// Which versions; times are distances from now until [`Look::at`].
#[derive(Clone, Copy, Debug)]
enum Times {
    All,
    Between(i64, i64),
    Only(i64),
}

/// Which rows, or which of their columns.
#[derive(Clone, Debug)]
pub(super) enum Shows {
    Everything,
    If(Condition),
    /// So many columns, from this place on.
    Columns(usize, usize),
}

/// Tests, put together.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    Test(Test),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

pub(super) fn test() -> impl Strategy<Value = Test> {
    let test = (column(), any::<bool>(), -3..9_i64, any::<bool>(), any::<bool>());
    test.prop_map(|(column, greater, than, fails_if_missing, latest)| Test {
        column,
        greater,
        than,
        fails_if_missing,
        latest,
    })
}

fn conditions() -> impl Strategy<Value = Condition> {
    test().prop_map(Condition::Test).prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|condition| Condition::Not(Box::new(condition))),
            vec(inner.clone(), 2..4).prop_map(Condition::All),
            vec(inner, 2..4).prop_map(Condition::Any),
        ]
    })
}

pub(super) fn look() -> impl Strategy<Value = Look> {
    let edge = || prop_oneof![3 => Just(None), 1 => column().prop_map(Some)];
    let shows = prop_oneof![
        3 => Just(Shows::Everything),
        2 => conditions().prop_map(Shows::If),
        1 => (0..3_usize, 1..3_usize).prop_map(|(from, count)| Shows::Columns(from, count)),
    ];
    let versions = (1..4_usize).prop_map(Some);
    let when = prop_oneof![
        4 => versions.clone().prop_map(|versions| (Times::All, versions)),
        2 => (-3..2_i64, 0..4_i64, prop_oneof![Just(None), versions])
            .prop_map(|(from, length, versions)| (Times::Between(from, from + length), versions)),
        1 => (-2..3_i64).prop_map(|time| (Times::Only(time), None)),
    ];
    (vec(column(), 0..3), edge(), edge(), when, shows).prop_map(
        |(columns, from, before, (times, versions), shows)| Look {
            columns,
            between: (from, before),
            times,
            versions,
            shows,
        },
    )
}

impl Look {
    /// The same with times, of a read that is made now.
    pub(super) fn at(mut self, now: i64) -> Look {
        self.times = match self.times {
            Times::All => Times::All,
            Times::Between(start, end) => Times::Between(now + start, now + end),
            Times::Only(time) => Times::Only(now + time),
        };
        self
    }

    /// Whether it asks for a version of a column.
    pub(super) fn asks_for(&self, column: &str, time: i64) -> bool {
        let is_named = self.columns.is_empty() || self.columns.contains(&column);
        let (from, before) = self.between;
        let in_time = match self.times {
            Times::All => true,
            Times::Between(start, end) => start <= time && time < end,
            Times::Only(only) => time == only,
        };
        is_named
            && in_time
            && from.is_none_or(|from| from <= column)
            && before.is_none_or(|before| column < before)
    }

    pub(super) fn of_row(&self, key: Vec<u8>) -> proto::GetRowRequest {
        proto::GetRowRequest {
            table_name: "t".to_owned(),
            primary_key: Some(key),
            columns_to_get: names(&self.columns),
            time_range: self.time_range(),
            max_versions: self.versions.map(|versions| versions as i32),
            filter: self.filter(),
            start_column: self.between.0.map(str::to_owned),
            end_column: self.between.1.map(str::to_owned),
            ..proto::GetRowRequest::default()
        }
    }

    pub(super) fn of_range(&self, limit: i32, range: proto::GetRangeRequest) -> proto::GetRangeRequest {
        proto::GetRangeRequest {
            limit: Some(limit),
            columns_to_get: names(&self.columns),
            time_range: self.time_range(),
            max_versions: self.versions.map(|versions| versions as i32),
            filter: self.filter(),
            start_column: self.between.0.map(str::to_owned),
            end_column: self.between.1.map(str::to_owned),
            ..range
        }
    }

    fn time_range(&self) -> Option<proto::TimeRange> {
        let range = |start, end, specific| Some(proto::TimeRange { start, end, specific });
        match self.times {
            Times::All => None,
            Times::Between(start, end) => range(Some(start), Some(end), None),
            Times::Only(time) => range(None, None, Some(time)),
        }
    }

    fn filter(&self) -> Option<Vec<u8>> {
        match &self.shows {
            Shows::Everything => None,
            Shows::If(condition) => Some(condition.sent().encode_to_vec()),
            Shows::Columns(from, count) => {
                let page = proto::PaginationFilter { offset: Some(*from as i32), limit: Some(*count as i32) };
                Some(wrapped(proto::FilterType::ColumnPagination, &page).encode_to_vec())
            }
        }
    }
}

impl Condition {
    pub(super) fn passes(&self, cells: &Cells) -> bool {
        match self {
            Condition::Test(test) => test.passes(cells),
            Condition::Not(condition) => !condition.passes(cells),
            Condition::All(conditions) => conditions.iter().all(|condition| condition.passes(cells)),
            Condition::Any(conditions) => conditions.iter().any(|condition| condition.passes(cells)),
        }
    }

    fn sent(&self) -> proto::Filter {
        let composite = |combination: proto::Combination, conditions: &[Condition]| {
            let filter = proto::CompositeFilter {
                combination: Some(combination as i32),
                sub_filters: conditions.iter().map(Condition::sent).collect(),
            };
            wrapped(proto::FilterType::Composite, &filter)
        };
        match self {
            Condition::Test(test) => sent(*test),
            Condition::Not(condition) => {
                composite(proto::Combination::Not, std::slice::from_ref(&**condition))
            }
            Condition::All(conditions) => composite(proto::Combination::And, conditions),
            Condition::Any(conditions) => composite(proto::Combination::Or, conditions),
        }
    }
}

/// A test as a filter.
pub(super) fn sent(test: Test) -> proto::Filter {
    let Test { column, greater, than, fails_if_missing, latest } = test;
    let comparison = if greater { proto::Comparison::GreaterThan } else { proto::Comparison::LessEqual };
    let single = proto::SingleColumnFilter {
        comparison: Some(comparison as i32),
        column_name: column.to_owned(),
        column_value: [&[0][..], &than.to_le_bytes()].concat(),
        filter_if_missing: fails_if_missing,
        latest_version_only: latest,
        value_transfer_rule: None,
    };
    wrapped(proto::FilterType::SingleColumnValue, &single)
}

fn wrapped(kind: proto::FilterType, filter: &impl Message) -> proto::Filter {
    proto::Filter { r#type: Some(kind as i32), filter: Some(filter.encode_to_vec()) }
}
