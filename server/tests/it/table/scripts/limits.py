"""What is wrong or too large: each is refused with its code, its status and, where clients may look at it, its text."""

import math

from tablestore import (
    INF_MAX,
    INF_MIN,
    Condition,
    Direction,
    Row,
    RowExistenceExpectation,
)
from world import DAY, client, columns, equal, refused, table

ots = client()
IGNORE = Condition(RowExistenceExpectation.IGNORE)
INVALID, KEY_INVALID = "OTSParameterInvalid", "OTSInvalidPK"
name = table(ots, "limits")
KEY = [("g", "a"), ("id", 1)]


def put(key, values=(("x", 1),)):
    return lambda: ots.put_row(name, Row(list(key), list(values)), IGNORE)


# Tables.
for bad in ("1table", "a-b", "ä", "x" * 256):
    refused(INVALID, lambda: table(ots, bad), 400, f"Invalid table name: '{bad}'.")
refused(INVALID, lambda: table(ots, "twice", [("a", "STRING"), ("a", "STRING")]), 400,
        "Duplicated primary key name: 'a'.")
for count in (0, 5):
    refused(INVALID, lambda: table(ots, "keys", [(f"k{n}", "STRING") for n in range(count)]), 400,
            "The number of primary key columns must be in range: [1, 4].")
table(ots, "four_keys", [("a", "BINARY"), ("b", "INTEGER"), ("c", "STRING"), ("d", "BINARY")])
for options in ({"time_to_live": DAY - 1}, {"time_to_live": 0}, {"max_version": 0}, {"max_version": -1}, {"max_time_deviation": 0}):
    refused(INVALID, lambda: table(ots, "options", **options), 400)
assert "options" not in ots.list_table()

# Keys.
refused(KEY_INVALID, put([("g", "a")]), 400, "Validate PK size fail. Input: 1, Meta: 2.")
refused(KEY_INVALID, put([("g", "a"), ("other", 1)]), 400, "Validate PK name fail. Input: other, Meta: id.")
refused(KEY_INVALID, put([("g", 5), ("id", 1)]), 400, "Validate PK type fail. Input: VT_INTEGER, Meta: VT_STRING.")
refused(KEY_INVALID, put([("g", "a"), ("id", INF_MIN)]), 400, "VT_INF_MIN is an invalid type for the primary key.")
refused(INVALID, put([("g", "x" * 1025), ("id", 1)]), 400,
        "The length of primary key column: 'g' exceeds the MaxLength:1024 with CurrentLength:1025.")
put([("g", "x" * 1024), ("id", 2**63 - 1)])()
put([("g", ""), ("id", -(2**63))])()
_, row, _ = ots.get_row(name, [("g", ""), ("id", -(2**63))])
equal(row.primary_key, [("g", ""), ("id", -(2**63))])

# Columns.
refused(INVALID, put(KEY, [("x" * 256, 1)]), 400)
refused(INVALID, put(KEY, [("", 1)]), 400)
refused(INVALID, put(KEY, [("x", "y" * (2 * 1024 * 1024 + 1))]), 400,
        "The length of attribute column: 'x' exceeds the MaxLength:2097152 with CurrentLength:2097153.")
put(KEY, [("x", "y" * (2 * 1024 * 1024))])()
refused(INVALID, put(KEY, [(f"c{n}", n) for n in range(1025)]), 400,
        "The number of attribute columns exceeds the limit, limit count: 1024, column count: 1025.")
put(KEY, [(f"c{n}", n) for n in range(1024)])()
_, row, _ = ots.get_row(name, KEY)
equal(columns(row), {f"c{n}": n for n in range(1024)})
for number in (math.nan, math.inf, -math.inf):
    refused(INVALID, put(KEY, [("x", number)]), 400)
put(KEY, [("small", 5e-324), ("large", 1.7976931348623157e308), ("zero", -0.0), ("least", -(2**63))])()
_, row, _ = ots.get_row(name, KEY)
equal(columns(row), {"small": 5e-324, "large": 1.7976931348623157e308, "zero": -0.0, "least": -(2**63)})

# A row that was refused changed nothing.
refused(INVALID, put(KEY, [("fine", 1), ("x", math.nan)]), 400)
_, row, _ = ots.get_row(name, KEY)
assert "fine" not in columns(row)

# Reads.
low, high = [("g", INF_MIN), ("id", INF_MIN)], [("g", INF_MAX), ("id", INF_MAX)]
refused(INVALID, lambda: ots.get_row(name, KEY, columns_to_get=[f"c{n}" for n in range(1025)]), 400)
refused(KEY_INVALID, lambda: ots.get_row(name, [("g", "a"), ("id", INF_MAX)]), 400)
refused(KEY_INVALID, lambda: ots.get_range(name, Direction.FORWARD, low[:1], high[:1], max_version=1), 400)
refused("OTSObjectNotExist", lambda: ots.get_row("nowhere", KEY), 404, "Requested table does not exist.")
refused("OTSObjectNotExist", lambda: ots.put_row("nowhere", Row(KEY, [("x", 1)]), IGNORE), 404)

# As many tables as an instance may have; then no more.
there = len(ots.list_table())
for number in range(there, 64):
    table(ots, f"one_of_many_{number}")
refused("OTSQuotaExhausted", lambda: table(ots, "one_too_many"), 403, "Number of tables exceeds the quota:64.")
equal(len(ots.list_table()), 64)
