"""Keys that the server assigns: they grow, are told when asked for, and take no condition (S19)."""

from concurrent.futures import ThreadPoolExecutor

from tablestore import (
    INF_MAX,
    INF_MIN,
    PK_AUTO_INCR,
    BatchWriteRowRequest,
    Condition,
    Direction,
    PutRowItem,
    ReturnType,
    Row,
    RowExistenceExpectation,
    SingleColumnCondition,
    ComparatorType,
    TableInBatchWriteRowItem,
)
from world import client, columns, equal, refused, table

ots = client()
IGNORE = Condition(RowExistenceExpectation.IGNORE)
EXIST = Condition(RowExistenceExpectation.EXPECT_EXIST)
NOT_EXIST = Condition(RowExistenceExpectation.EXPECT_NOT_EXIST)
KEY = (("g", "STRING"), ("id", "INTEGER", PK_AUTO_INCR))
name = table(ots, "auto_increment", KEY)
equal([tuple(c) for c in ots.describe_table(name).table_meta.schema_of_primary_key], [("g", "STRING"), ("id", "INTEGER", PK_AUTO_INCR)])


def put(group, value):
    row = Row([("g", group), ("id", PK_AUTO_INCR)], [("x", value)])
    consumed, returned = ots.put_row(name, row, IGNORE, ReturnType.RT_PK)
    equal((consumed.read, consumed.write), (0, 1))
    equal(returned.attribute_columns, [])
    assert returned.primary_key[0] == ("g", group) and returned.primary_key[1][0] == "id"
    return returned.primary_key[1][1]


# They grow within one partition key, whoever writes, and each is given once.
first = [put("a", number) for number in range(20)]
assert first == sorted(set(first)) and first[0] > 0, first
with ThreadPoolExecutor(16) as pool:
    given = list(pool.map(lambda number: (put("b", number), number), range(300)))
equal(len({id for id, _ in given}), 300)
_, following, rows, _ = ots.get_range(
    name, Direction.FORWARD, [("g", "b"), ("id", INF_MIN)], [("g", "b"), ("id", INF_MAX)], max_version=1
)
equal(following, None)
equal([(row.primary_key[1][1], columns(row)["x"]) for row in rows], sorted(given))

# Not asked for, the key is not told.
_, returned = ots.put_row(name, Row([("g", "c"), ("id", PK_AUTO_INCR)], [("x", 1)]), IGNORE)
assert not returned or not returned.primary_key

# A batch gets them in its order.
batch = BatchWriteRowRequest()
placeholders = [Row([("g", "d"), ("id", PK_AUTO_INCR)], [("x", number)]) for number in range(200)]
batch.add(TableInBatchWriteRowItem(name, [PutRowItem(row, IGNORE, ReturnType.RT_PK) for row in placeholders]))
answer = ots.batch_write_row(batch)
assert answer.is_all_succeed()
ids = [item.row.primary_key[1][1] for item in answer.get_put_by_table(name)]
assert ids == sorted(set(ids)), ids

# An update with the placeholder makes a row, too.
updated = Row([("g", "e"), ("id", PK_AUTO_INCR)], {"put": [("x", 5)]})
_, returned = ots.update_row(name, updated, IGNORE, ReturnType.RT_PK)
_, row, _ = ots.get_row(name, returned.primary_key)
equal(columns(row), {"x": 5})

# Rules of the placeholder.
placeholder = Row([("g", "a"), ("id", PK_AUTO_INCR)], [("x", 1)])
refused(
    "OTSParameterInvalid",
    lambda: ots.put_row(name, placeholder, NOT_EXIST),
    400,
    "Invalid expect:EXPECT_NOT_EXIST when modify row with pk auto increment.",
)
refused(
    "OTSParameterInvalid",
    lambda: ots.put_row(name, placeholder, EXIST),
    400,
    "Invalid expect:EXPECT_EXIST when modify row with pk auto increment.",
)
conditional = Condition(RowExistenceExpectation.IGNORE, SingleColumnCondition("x", 1, ComparatorType.EQUAL))
refused(
    "OTSParameterInvalid",
    lambda: ots.put_row(name, placeholder, conditional),
    400,
    "Can't set condition when modify row with pk auto increment.",
)
refused(
    "OTSParameterInvalid",
    lambda: ots.delete_row(name, Row(placeholder.primary_key), IGNORE),
    400,
    "Invalid row to delete which with pk auto increment.",
)
refused(
    "OTSParameterInvalid",
    lambda: ots.get_row(name, placeholder.primary_key),
    400,
    "PKAutoIncr can't be used for read operations.",
)

# Rows that are there are changed and deleted by their keys; a later put gets a new one all the same.
last = first[-1]
ots.update_row(name, Row([("g", "a"), ("id", last)], {"put": [("x", 99)]}), EXIST)
_, row, _ = ots.get_row(name, [("g", "a"), ("id", last)])
equal(columns(row), {"x": 99})
ots.delete_row(name, Row([("g", "a"), ("id", last)]), IGNORE)
assert put("a", 0) > last

# What no table can be.
for key, text in [
    ((("id", "INTEGER", PK_AUTO_INCR), ("g", "STRING")), "First primary key can't be auto increment, table: bad."),
    ((("g", "STRING"), ("id", "STRING", PK_AUTO_INCR)), "AUTO_INCREMENT primary key must be integer."),
    (
        (("g", "STRING"), ("a", "INTEGER", PK_AUTO_INCR), ("b", "INTEGER", PK_AUTO_INCR)),
        "AUTO_INCREMENT primary key count must <= 1.",
    ),
]:
    refused("OTSParameterInvalid", lambda: table(ots, "bad", key), 400, text)
