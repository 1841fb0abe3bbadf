"""Make a table, put, get, update and delete rows, for both versions of signatures and both encoders."""

from tablestore import Condition, Row, RowExistenceExpectation, TableOptions
from world import both, columns, equal, refused, table

IGNORE = Condition(RowExistenceExpectation.IGNORE)

for number, ots in enumerate(both()):
    name = table(ots, f"quickstart_{number}", columns=[("x", "INTEGER"), ("s", "STRING")])
    assert name in ots.list_table()
    refused("OTSObjectAlreadyExist", lambda: table(ots, name), 409, "Requested table already exists.")
    # Nor does a table take other options by being made again.
    again = lambda: table(ots, name, time_to_live=2 * 86_400, max_version=7)
    refused("OTSObjectAlreadyExist", again, 409, "Requested table already exists.")

    described = ots.describe_table(name)
    equal(described.table_meta.table_name, name)
    equal(list(described.table_meta.schema_of_primary_key), [("g", "STRING"), ("id", "INTEGER")])
    equal(sorted(column[0] for column in described.table_meta.defined_columns), ["s", "x"])
    equal(described.table_options.max_version, 1)
    equal(described.table_options.time_to_live, -1)
    equal(described.table_options.max_time_deviation, 86_400)

    key = [("g", "the group"), ("id", 5)]
    values = [("x", 1), ("s", "text, ünï¢ødé 表格"), ("d", -0.5), ("t", True), ("b", bytearray(b"\x00\xff"))]
    consumed, _ = ots.put_row(name, Row(key, values), IGNORE)
    equal((consumed.read, consumed.write), (0, 1))
    consumed, row, token = ots.get_row(name, key)
    equal((consumed.read, consumed.write), (1, 0))
    equal(row.primary_key, key)
    equal(columns(row), dict(values))
    assert not token

    consumed, row, _ = ots.get_row(name, key, columns_to_get=["x", "none"])
    equal(columns(row), {"x": 1})
    consumed, row, _ = ots.get_row(name, [("g", "nobody"), ("id", 5)])
    equal(row, None)
    equal((consumed.read, consumed.write), (1, 0))

    ots.update_row(name, Row(key, {"put": [("x", 2)], "delete_all": ["s"], "increment": [("n", 7)]}), IGNORE)
    _, row, _ = ots.get_row(name, key)
    equal(columns(row), {"x": 2, "d": -0.5, "t": True, "b": bytearray(b"\x00\xff"), "n": 7})

    # A put replaces all of a row.
    ots.put_row(name, Row(key, [("y", 9)]), IGNORE)
    _, row, _ = ots.get_row(name, key)
    equal(columns(row), {"y": 9})
    ots.delete_row(name, Row(key), IGNORE)
    _, row, _ = ots.get_row(name, key)
    equal(row, None)

    answer = ots.update_table(name, TableOptions(3 * 86_400, 5, 100_000))
    equal(answer.table_options.time_to_live, 3 * 86_400)
    options = ots.describe_table(name).table_options
    equal((options.time_to_live, options.max_version, options.max_time_deviation), (3 * 86_400, 5, 100_000))

    equal(list(ots.list_search_index(name)), [])
    ots.delete_table(name)
    assert name not in ots.list_table()
    refused("OTSObjectNotExist", lambda: ots.describe_table(name), 404, "Requested table does not exist.")
    refused("OTSObjectNotExist", lambda: ots.delete_table(name), 404)
    refused("OTSUnsupportedOperation", lambda: ots.exe_sql_query("show tables"), 400)
    refused("OTSUnsupportedOperation", lambda: ots.start_local_transaction(name, [("g", "a")]), 400)
