"""Every condition of a write: whether the row is there, and what its columns hold."""

from tablestore import (
    ComparatorType as Is,
    CompositeColumnCondition,
    Condition,
    LogicalOperator,
    ReturnType,
    Row,
    RowExistenceExpectation as Rows,
    SingleColumnCondition,
)
from world import client, columns, equal, refused, table

ots = client()
name = table(ots, "conditions")
KEY = [("g", "a"), ("id", 1)]
ANY, EXIST, ABSENT = (Condition(what) for what in (Rows.IGNORE, Rows.EXPECT_EXIST, Rows.EXPECT_NOT_EXIST))


def put(condition, value=1):
    consumed, _ = ots.put_row(name, Row(KEY, [("x", value)]), condition)
    return consumed.read, consumed.write


def update(condition, value=1):
    consumed, _ = ots.update_row(name, Row(KEY, {"put": [("x", value)]}), condition)
    return consumed.read, consumed.write


def delete(condition):
    consumed, _ = ots.delete_row(name, Row(KEY), condition)
    return consumed.read, consumed.write


def fails(what, *arguments):
    refused("OTSConditionCheckFail", lambda: what(*arguments), 403, "Condition check failed.")


def value():
    _, row, _ = ots.get_row(name, KEY)
    return row and columns(row).get("x")


for what in (put, update, delete):
    fails(what, EXIST)
equal(put(ABSENT, 5), (1, 1))
fails(put, ABSENT)
fails(update, ABSENT)
equal(put(EXIST, 6), (1, 1))
equal(update(EXIST, 7), (1, 1))
equal(update(ANY, 8), (0, 1))
equal(value(), 8)
equal(delete(EXIST), (1, 1))
equal(value(), None)
equal(update(ABSENT, 9), (1, 1))
equal(delete(ANY), (0, 1))


def when(condition, existence=Rows.IGNORE):
    return Condition(existence, condition)


def x(wanted, comparator=Is.EQUAL, **options):
    return SingleColumnCondition("x", wanted, comparator, **options)


put(ANY, 10)
fails(update, when(x(11)), 0)
equal(update(when(x(10)), 11), (1, 1))
fails(put, when(x(11, Is.GREATER_THAN), Rows.EXPECT_EXIST), 0)
fails(delete, when(x(11, Is.NOT_EQUAL)))
equal(value(), 11)
both = CompositeColumnCondition(LogicalOperator.AND)
both.add_sub_condition(x(11))
both.add_sub_condition(SingleColumnCondition("other", 1, Is.EQUAL, pass_if_missing=False))
fails(update, when(both), 0)
either = CompositeColumnCondition(LogicalOperator.OR)
either.add_sub_condition(x(12))
either.add_sub_condition(SingleColumnCondition("other", 1, Is.EQUAL))
equal(update(when(either), 12), (1, 1))
equal(delete(when(x(12), Rows.EXPECT_EXIST)), (1, 1))
equal(value(), None)
# Of a row that is not there every column is missing.
fails(put, when(x(1, pass_if_missing=False)))
equal(put(when(x(1)), 1), (1, 1))

# Increments, and what comes back of them.
ots.update_row(name, Row(KEY, {"increment": [("n", 5)]}), ANY)
_, row = ots.update_row(name, Row(KEY, {"increment": [("n", -2)], "put": [("s", "text")]}), ANY)
increment = {"increment": [("n", 10)]}
_, row, _ = ots.get_row(name, KEY)
equal(columns(row)["n"], 3)
refused("OTSParameterInvalid", lambda: ots.update_row(name, Row(KEY, {"increment": [("s", 1)]}), ANY), 400)
_, row, _ = ots.get_row(name, KEY)
equal(columns(row), {"x": 1, "n": 3, "s": "text"})

# Only the key comes back, when it is asked for.
_, row = ots.put_row(name, Row(KEY, [("x", 1)]), ANY, ReturnType.RT_PK)
equal(row.primary_key, KEY)

# A table whose rows may not be updated.
fixed = table(ots, "conditions_fixed", allow_update=False)
ots.put_row(fixed, Row(KEY, [("x", 1)]), ANY)
refused("OTSParameterInvalid", lambda: ots.update_row(fixed, Row(KEY, {"put": [("x", 2)]}), ANY), 400,
        "Update operation is not allowed in this table")
