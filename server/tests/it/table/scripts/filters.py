"""Every filter: comparisons of every type, combinations, missing columns, versions. (The SDK for Node.js has pages of columns, too.)"""

import time

from tablestore import (
    INF_MAX,
    INF_MIN,
    ComparatorType as Is,
    CompositeColumnCondition,
    Condition,
    Direction,
    LogicalOperator,
    Row,
    RowExistenceExpectation,
    SingleColumnCondition,
)
from world import client, columns, equal, refused, table

ots = client()
now = int(time.time() * 1000)
name = table(ots, "filters", max_version=3)
IGNORE = Condition(RowExistenceExpectation.IGNORE)
for number in range(10):
    values = [("n", number), ("d", number / 2), ("s", f"s{number}"), ("t", number % 2 == 0), ("b", bytearray([number]))]
    ots.put_row(name, Row([("g", "a"), ("id", number)], values + ([("even", 1)] if number % 2 == 0 else [])), IGNORE)


def found(condition, direction=Direction.FORWARD):
    low, high = [("g", INF_MIN), ("id", INF_MIN)], [("g", INF_MAX), ("id", INF_MAX)]
    start, end = (low, high) if direction == Direction.FORWARD else (high, low)
    _, following, rows, _ = ots.get_range(name, direction, start, end, column_filter=condition, max_version=1)
    equal(following, None)
    return [row.primary_key[1][1] for row in rows]


def on(column, value, comparator, **options):
    return SingleColumnCondition(column, value, comparator, **options)


def combined(operator, *conditions):
    whole = CompositeColumnCondition(operator)
    for condition in conditions:
        whole.add_sub_condition(condition)
    return whole


COMPARISONS = [
    (Is.EQUAL, lambda a, b: a == b),
    (Is.NOT_EQUAL, lambda a, b: a != b),
    (Is.GREATER_THAN, lambda a, b: a > b),
    (Is.GREATER_EQUAL, lambda a, b: a >= b),
    (Is.LESS_THAN, lambda a, b: a < b),
    (Is.LESS_EQUAL, lambda a, b: a <= b),
]
for comparator, holds in COMPARISONS:
    for column, value in [("n", 4), ("d", 2.0), ("s", "s4"), ("b", bytearray([4]))]:
        equal(found(on(column, value, comparator)), [n for n in range(10) if holds(n, 4)])
equal(found(on("t", True, Is.EQUAL)), [0, 2, 4, 6, 8])
equal(found(on("t", True, Is.NOT_EQUAL)), [1, 3, 5, 7, 9])
equal(found(on("n", 4, Is.LESS_THAN), Direction.BACKWARD), [3, 2, 1, 0])

# Key columns may be asked about, too.
equal(found(on("id", 7, Is.GREATER_THAN, pass_if_missing=False)), [8, 9])

# A missing column passes, unless it must not.
equal(found(on("even", 1, Is.EQUAL)), list(range(10)))
equal(found(on("even", 1, Is.EQUAL, pass_if_missing=False)), [0, 2, 4, 6, 8])
# Another type does not match.
equal(found(on("n", "4", Is.EQUAL, pass_if_missing=False)), [])

low, high = on("n", 3, Is.LESS_THAN), on("n", 6, Is.GREATER_THAN)
equal(found(combined(LogicalOperator.OR, low, high)), [0, 1, 2, 7, 8, 9])
equal(found(combined(LogicalOperator.AND, low, high)), [])
equal(found(combined(LogicalOperator.NOT, low)), [3, 4, 5, 6, 7, 8, 9])
nested = combined(LogicalOperator.AND, combined(LogicalOperator.OR, low, high), combined(LogicalOperator.NOT, on("t", True, Is.EQUAL)))
equal(found(nested), [1, 7, 9])

# All versions, or the newest alone.
key = [("g", "v"), ("id", 1)]
for age in (3, 2, 1):
    ots.update_row(name, Row(key, {"put": [("n", 4 - age, now - age)]}), IGNORE)
_, row, _ = ots.get_row(name, key, column_filter=on("n", 1, Is.EQUAL), max_version=3)
equal(row, None)
_, row, _ = ots.get_row(name, key, column_filter=on("n", 1, Is.EQUAL, latest_version_only=False), max_version=3)
assert row is not None
ots.delete_row(name, Row(key), IGNORE)

# A filter on a column that is not asked for sees nothing of it.
_, row, _ = ots.get_row(name, [("g", "a"), ("id", 4)], columns_to_get=["n"], column_filter=on("n", 4, Is.EQUAL), max_version=1)
equal(columns(row), {"n": 4})

# Too many, too few.
many = combined(LogicalOperator.AND, *[on("n", n, Is.NOT_EQUAL) for n in range(33)])
refused("OTSParameterInvalid", lambda: found(many), 400, "The count of filter exceeds the max: 32.")
equal(found(combined(LogicalOperator.AND, *[on("n", n + 5, Is.NOT_EQUAL) for n in range(32)])), [0, 1, 2, 3, 4])
for operator, conditions, text in [
    (LogicalOperator.NOT, [low, high], "Invalid NOT operator: the number of sub-filters must be 1."),
    (LogicalOperator.AND, [low], "Invalid AND operator: the number of sub-filters must be more than 1."),
    (LogicalOperator.OR, [low], "Invalid OR operator: the number of sub-filters must be more than 1."),
]:
    refused("OTSParameterInvalid", lambda: found(combined(operator, *conditions)), 400, text)
