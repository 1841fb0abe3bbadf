"""12,000 rows, written in batches and read page by page in both directions."""

from tablestore import (
    INF_MAX,
    INF_MIN,
    BatchWriteRowRequest,
    CapacityUnit,
    ComparatorType,
    Condition,
    Direction,
    PutRowItem,
    Row,
    RowExistenceExpectation,
    SingleColumnCondition,
    TableInBatchWriteRowItem,
)
from world import client, columns, equal, refused, table

ROWS = 12_000
ots = client()
name = table(ots, "paging")
LOW = [("g", INF_MIN), ("id", INF_MIN)]
HIGH = [("g", INF_MAX), ("id", INF_MAX)]


def key(number):
    return [("g", "abc"[number * 3 // ROWS]), ("id", number)]


for begin in range(0, ROWS, 200):
    batch = BatchWriteRowRequest()
    items = [PutRowItem(Row(key(n), [("x", n), ("y", "z" * 20)]), Condition(RowExistenceExpectation.IGNORE))
             for n in range(begin, begin + 200)]
    batch.add(TableInBatchWriteRowItem(name, items))
    assert ots.batch_write_row(batch).is_all_succeed()


def pages(direction, start, end, limit=None, **options):
    """All pages of a range."""
    while start is not None:
        consumed, start, rows, _ = ots.get_range(name, direction, start, end, limit=limit, max_version=1, **options)
        yield consumed, rows


for direction, start, end, expected in [
    (Direction.FORWARD, LOW, HIGH, list(range(ROWS))),
    (Direction.BACKWARD, HIGH, LOW, list(range(ROWS - 1, -1, -1))),
    (Direction.FORWARD, key(3_999), key(8_001), list(range(3_999, 8_001))),
    (Direction.BACKWARD, key(8_001), key(3_999), list(range(8_001, 3_999, -1))),
    (Direction.FORWARD, [("g", "b"), ("id", INF_MIN)], [("g", "b"), ("id", INF_MAX)], list(range(4_000, 8_000))),
]:
    for limit in (None, 777):
        found, sizes = [], []
        for consumed, rows in pages(direction, start, end, limit):
            assert consumed.read > 0 and consumed.write == 0
            sizes.append(len(rows))
            found += [columns(row)["x"] for row in rows]
            equal([row.primary_key for row in rows], [key(columns(row)["x"]) for row in rows])
        equal(found, expected)
        assert max(sizes) <= (limit or 5_000), sizes
        if limit:
            equal(sizes[:-1], [limit] * (len(sizes) - 1))

# A page ends after 5,000 rows that were looked at, also where a filter leaves all of them out; what looking costs is told.
nothing = SingleColumnCondition("x", -1, ComparatorType.EQUAL)
for direction, start, end in [(Direction.FORWARD, LOW, HIGH), (Direction.BACKWARD, HIGH, LOW)]:
    empty = list(pages(direction, start, end, column_filter=nothing))
    equal([len(rows) for _, rows in empty], [0, 0, 0])
    assert all(consumed.read > 0 for consumed, _ in empty)
last = SingleColumnCondition("x", ROWS - 1, ComparatorType.EQUAL)
equal([len(rows) for _, rows in pages(Direction.FORWARD, LOW, HIGH, column_filter=last)], [0, 0, 1])

# The iterator of the SDK.
used = CapacityUnit()
iterated = ots.xget_range(name, Direction.FORWARD, LOW, HIGH, used, count=11_000, max_version=1)
equal(sum(1 for _ in iterated), 11_000)
assert used.read > 0 and used.write == 0

for direction, start, end, text in [
    (Direction.FORWARD, key(5), key(5), "Begin key must less than end key in FORWARD"),
    (Direction.FORWARD, key(6), key(5), "Begin key must less than end key in FORWARD"),
    (Direction.BACKWARD, key(5), key(6), "Begin key must more than end key in BACKWARD"),
]:
    refused("OTSParameterInvalid", lambda: ots.get_range(name, direction, start, end, max_version=1), 400, text)
for limit in (0, -1):
    refused("OTSParameterInvalid", lambda: ots.get_range(name, Direction.FORWARD, LOW, HIGH, limit=limit, max_version=1), 400,
            "The limit must be greater than 0.")
