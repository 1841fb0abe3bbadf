"""Batches: each row has a result of its own; what is wrong with the whole is refused as a whole."""

import time

from tablestore import (
    BatchGetRowRequest,
    BatchWriteRowRequest,
    ComparatorType,
    Condition,
    DeleteRowItem,
    PutRowItem,
    Row,
    RowExistenceExpectation,
    SingleColumnCondition,
    TableInBatchGetRowItem,
    TableInBatchWriteRowItem,
    UpdateRowItem,
)
from world import both, client, columns, equal, refused, table

IGNORE = Condition(RowExistenceExpectation.IGNORE)
EXIST = Condition(RowExistenceExpectation.EXPECT_EXIST)


def key(number):
    return [("g", "a"), ("id", number)]


def write(ots, name, items):
    batch = BatchWriteRowRequest()
    batch.add(TableInBatchWriteRowItem(name, items))
    return ots.batch_write_row(batch)


def read(ots, name, keys, **options):
    batch = BatchGetRowRequest()
    batch.add(TableInBatchGetRowItem(name, keys, max_version=1, **options))
    return ots.batch_get_row(batch)


for run, ots in enumerate(both()):
    name = table(ots, f"batches_{run}")
    answer = write(ots, name, [PutRowItem(Row(key(n), [("x", n)]), IGNORE) for n in range(200)])
    assert answer.is_all_succeed()
    equal([(i.consumed.read, i.consumed.write) for i in answer.get_put_by_table(name)], [(0, 1)] * 200)

    # Puts, updates and deletes together, and rows that fail: the others stand.
    answer = write(ots, name, [
        UpdateRowItem(Row(key(0), {"put": [("y", 1)]}), EXIST),
        DeleteRowItem(Row(key(1)), IGNORE),
        UpdateRowItem(Row(key(900), {"put": [("y", 1)]}), EXIST),
        PutRowItem(Row([("wrong", "a"), ("id", 1)], [("x", 1)]), IGNORE),
        PutRowItem(Row(key(201), [("x", 201)]), IGNORE),
    ])
    equal([item.is_ok for item in answer.get_update_by_table(name)], [True, False])
    equal(answer.get_update_by_table(name)[1].error_code, "OTSConditionCheckFail")
    equal(answer.get_update_by_table(name)[1].error_message, "Condition check failed.")
    equal([item.is_ok for item in answer.get_put_by_table(name)], [False, True])
    equal(answer.get_put_by_table(name)[0].error_code, "OTSInvalidPK")
    equal([item.is_ok for item in answer.get_delete_by_table(name)], [True])

    # Rows that are not there are successes without a row.
    answer = read(ots, name, [key(0), key(1), key(201)])
    assert answer.is_all_succeed()
    rows = answer.get_result_by_table(name)
    equal([row.row and columns(row.row) for row in rows], [{"x": 0, "y": 1}, None, {"x": 201}])
    rows = read(ots, name, [key(0)], columns_to_get=["y"]).get_result_by_table(name)
    equal(columns(rows[0].row), {"y": 1})
    rows = read(ots, name, [key(0), [("g", 5), ("id", 0)]]).get_result_by_table(name)
    equal([row.is_ok for row in rows], [True, False])
    equal(rows[1].error_code, "OTSInvalidPK")

    # A row that the filter leaves out is answered like one that is not there.
    three = SingleColumnCondition("x", 3, ComparatorType.EQUAL)
    rows = read(ots, name, [key(2), key(3), key(900)], column_filter=three).get_result_by_table(name)
    equal([(row.is_ok, row.row and columns(row.row)) for row in rows], [(True, None), (True, {"x": 3}), (True, None)])
    # Without a cell in the time range, a row is its key.
    now = int(time.time() * 1000)
    write(ots, name, [PutRowItem(Row(key(300 + age), [("x", age, now - age)]), IGNORE) for age in (1, 2, 3)])
    times = (now - 2, now - 1)
    rows = read(ots, name, [key(301), key(302), key(303), key(304)], time_range=times).get_result_by_table(name)
    equal([row.row and columns(row.row) for row in rows], [{}, {"x": 2}, {}, None])

    # The same row twice: in order.
    write(ots, name, [PutRowItem(Row(key(5), [("x", value)]), IGNORE) for value in ("first", "second")])
    _, row, _ = ots.get_row(name, key(5))
    equal(columns(row), {"x": "second"})

    # A table entry without keys.
    assert read(ots, name, []).is_all_succeed()
    refused("OTSParameterInvalid", lambda: read(ots, name, [key(n) for n in range(101)]), 400,
            "Rows count exceeds the upper limit: 100.")
    items = [PutRowItem(Row(key(n), [("x", n)]), IGNORE) for n in range(201)]
    refused("OTSParameterInvalid", lambda: write(ots, name, items), 400, "Rows count exceeds the upper limit: 200.")
    refused("OTSParameterInvalid", lambda: write(ots, name, []), 400, f"No operation is specified for table: '{name}'.")
    large = [PutRowItem(Row(key(n), [("x", "y" * 1_500_000)]), IGNORE) for n in range(3)]
    text = refused("OTSParameterInvalid", lambda: write(ots, name, large), 400)
    assert text.startswith("The total data size of BatchWriteRow request exceeds the limit, limit size: 4194304"), text
    _, row, _ = ots.get_row(name, key(2))
    equal(columns(row), {"x": 2})

# A table that is not there: its rows fail, those of others do not.
ots = client()
batch = BatchWriteRowRequest()
batch.add(TableInBatchWriteRowItem("batches_0", [PutRowItem(Row(key(1), [("x", 1)]), IGNORE)]))
batch.add(TableInBatchWriteRowItem("nowhere", [PutRowItem(Row(key(1), [("x", 1)]), IGNORE)]))
answer = ots.batch_write_row(batch)
equal([item.is_ok for item in answer.get_put_by_table("batches_0")], [True])
equal([item.error_code for item in answer.get_put_by_table("nowhere")], ["OTSObjectNotExist"])
