"""Versions and TTL: how many are kept, which are asked for, and which have expired."""

import time

from tablestore import Condition, Row, RowExistenceExpectation, TableOptions
from world import DAY, client, equal, refused, table

ots = client()
IGNORE = Condition(RowExistenceExpectation.IGNORE)
KEY = [("g", "a"), ("id", 1)]
now = int(time.time() * 1000)
name = table(ots, "versions", max_version=3, max_time_deviation=1_000 * DAY)


def versions(of=name, **options):
    _, row, _ = ots.get_row(of, KEY, **options)
    return None if row is None else [(column, value, at - now) for column, value, at in row.attribute_columns]


for age in (5, 4, 3, 2, 1):
    ots.update_row(name, Row(KEY, {"put": [("x", age, now - age)]}), IGNORE)
# The newest three, newest first.
equal(versions(max_version=9), [("x", 1, -1), ("x", 2, -2), ("x", 3, -3)])
equal(versions(max_version=1), [("x", 1, -1)])
equal(versions(time_range=(now - 3, now - 1), max_version=9), [("x", 2, -2), ("x", 3, -3)])
equal(versions(time_range=(now - 3, now), max_version=1), [("x", 1, -1)])
equal(versions(time_range=now - 2, max_version=None), [("x", 2, -2)])
# None in the range: the key alone.
equal(versions(time_range=(now + 5, now + 6)), [])
# An older version than those that are kept is not kept.
ots.update_row(name, Row(KEY, {"put": [("x", 9, now - 9)]}), IGNORE)
equal(len(versions(max_version=9)), 3)

# One version, and all of a column.
ots.update_row(name, Row(KEY, {"put": [("y", 1, now - 1)], "delete": [("x", None, now - 2)]}), IGNORE)
equal(versions(max_version=9), [("x", 1, -1), ("x", 3, -3), ("y", 1, -1)])
ots.update_row(name, Row(KEY, {"delete_all": ["x"]}), IGNORE)
equal(versions(max_version=9), [("y", 1, -1)])
# A row without columns stays until it is deleted.
ots.update_row(name, Row(KEY, {"delete_all": ["y"]}), IGNORE)
equal(versions(max_version=9), [])
ots.delete_row(name, Row(KEY), IGNORE)
equal(versions(max_version=9), None)
# Deleting columns of a row that is not there makes none.
ots.update_row(name, Row(KEY, {"delete_all": ["y"]}), IGNORE)
equal(versions(max_version=9), None)

refused("OTSParameterInvalid", lambda: versions(max_version=0), 400)
refused("OTSParameterInvalid", lambda: versions(max_version=None), 400,
        "No version condition is specified while querying row.")

# What is older than the TTL cannot be written, and what was written goes when it is.
short = table(ots, "versions_ttl", time_to_live=DAY, max_version=3, max_time_deviation=10 * DAY)
ots.put_row(short, Row(KEY, [("x", 1, now - DAY * 1_000 + 60_000), ("y", 2)]), IGNORE)
equal(sorted(column for column, *_ in versions(short, max_version=3)), ["x", "y"])
old = Row(KEY, [("x", 1, now - 2 * DAY * 1_000)])
refused("OTSParameterInvalid", lambda: ots.put_row(short, old, IGNORE), 400)
# Nor what lies further off than the deviation.
near = table(ots, "versions_near", max_time_deviation=DAY)
for at in (now - 2 * DAY * 1_000, now + 2 * DAY * 1_000):
    refused("OTSParameterInvalid", lambda: ots.put_row(near, Row(KEY, [("x", 1, at)]), IGNORE), 400)

# A longer TTL shows again what was not removed yet; a shorter one hides at once.
ots.update_row(name, Row(KEY, {"put": [("z", 1, now - 3 * DAY * 1_000), ("z", 2, now)]}), IGNORE)
equal([value for _, value, _ in versions(max_version=9)], [2, 1])
ots.update_table(name, TableOptions(DAY, 3, 1_000 * DAY))
equal([value for _, value, _ in versions(max_version=9)], [2])
for wrong in (0, 5, DAY - 1, -2):
    refused("OTSParameterInvalid", lambda: ots.update_table(name, TableOptions(wrong, 3, DAY)), 400)
