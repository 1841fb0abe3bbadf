"""Prints what is there as JSON: each table with its description and its rows, all versions of each column."""

import json

from tablestore import INF_MAX, INF_MIN, Direction
from world import client

ots = client()


def plain(value):
    return {"hex": bytes(value).hex()} if isinstance(value, (bytes, bytearray)) else value


def rows(name, key):
    low, high = ([(column, bound) for column in key] for bound in (INF_MIN, INF_MAX))
    while low:
        _, low, page, _ = ots.get_range(name, Direction.FORWARD, low, high, max_version=10)
        for row in page:
            columns = [[name, plain(value), time] for name, value, time in row.attribute_columns]
            yield {"key": [plain(value) for _, value in row.primary_key], "columns": columns}


def table(name):
    described = ots.describe_table(name)
    key = [column[0] for column in described.table_meta.schema_of_primary_key]
    options = described.table_options
    return {
        "name": name,
        "key": key,
        "time_to_live": options.time_to_live,
        "max_versions": options.max_version,
        "rows": list(rows(name, key)),
    }


print(json.dumps([table(name) for name in sorted(ots.list_table())], ensure_ascii=False))
