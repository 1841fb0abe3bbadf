"""The chat's inboxes are a table: a program puts rows into one, and reads it (S15, S19)."""

import hashlib
import json
import os
import urllib.request
import uuid

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
    TableInBatchWriteRowItem,
)
from world import client, columns, equal, refused

CHAT, TOKEN = os.environ["chat"], os.environ["token"]
SENDER, RECEIVER = int(os.environ["sender"]), int(os.environ["receiver"])
IGNORE = Condition(RowExistenceExpectation.IGNORE)
ots = client()


def key(message_id, receiver=RECEIVER):
    partition_key = hashlib.md5(str(receiver).encode()).hexdigest()[:4]
    return [("partition_key", partition_key), ("receiver", receiver), ("message_id", message_id)]


def put(text, **more):
    values = {"body": text, **more}
    row = Row(key(PK_AUTO_INCR), sorted(values.items()))
    _, written = ots.put_row("inbox", row, IGNORE, ReturnType.RT_PK)
    equal(written.primary_key[:2], key(0)[:2])
    return written.primary_key[2][1]


def inbox(receiver=RECEIVER):
    bounds = key(INF_MIN, receiver), key(INF_MAX, receiver)
    _, following, rows, _ = ots.get_range("inbox", Direction.FORWARD, *bounds, max_version=1)
    equal(following, None)
    return [(row.primary_key[2][1], columns(row)) for row in rows]


def seen():
    """The inbox as the receiver's own devices read it."""
    request = urllib.request.Request(f"{CHAT}/api/v1/range?start=INF_MIN&end=INF_MAX")
    request.add_header("authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["rows"]


assert "inbox" in ots.list_table() or ots.describe_table("inbox")
equal([column[0] for column in ots.describe_table("inbox").table_meta.schema_of_primary_key],
      ["partition_key", "receiver", "message_id"])

first = put("hello from a program")
second = put(json.dumps({"text": "and again"}))
assert 0 < first < second
rows = inbox()
equal([id for id, _ in rows], [first, second])
for _, found in rows:
    equal((found["sender"], found["kind"], found["conversation"]), (SENDER, "message", f"u:{SENDER}"))
equal([int(entry["message_id"]) for entry in seen()], [first, second])
equal([entry["body"]["text"] for entry in seen()], ["hello from a program", "and again"])
# The sender gets no copy.
equal(inbox(SENDER), [])

# The same client_id: the same row.
once = str(uuid.uuid4())
third = put("only once", client_id=once)
equal(put("only once", client_id=once), third)
equal(len(inbox()), 3)

# A kind of one's own, in a batch, in order.
batch = BatchWriteRowRequest()
items = [PutRowItem(Row(key(PK_AUTO_INCR), [("body", json.dumps({"n": n})), ("kind", "app.counted")]), IGNORE, ReturnType.RT_PK)
         for n in range(20)]
batch.add(TableInBatchWriteRowItem("inbox", items))
answer = ots.batch_write_row(batch)
assert answer.is_all_succeed(), [item.error_message for item in answer.get_failed_of_put()]
ids = [item.row.primary_key[2][1] for item in answer.get_put_by_table("inbox")]
assert ids == sorted(set(ids)) and ids[0] > third
equal([(id, json.loads(found["body"])["n"]) for id, found in inbox() if found["kind"] == "app.counted"],
      list(zip(ids, range(20))))
equal([int(entry["message_id"]) for entry in seen()][3:], ids)

# One row, and what is refused.
_, row, _ = ots.get_row("inbox", key(first))
equal(columns(row)["sender"], SENDER)
refused("OTSUnsupportedOperation", lambda: ots.delete_row("inbox", Row(key(first)), IGNORE), 400)
refused("OTSParameterInvalid", lambda: put("hello", colour="red"), 400)
refused("OTSParameterInvalid", lambda: put("hello", kind="unknown"), 400)
wrong = Row([("partition_key", "zzzz")] + key(PK_AUTO_INCR)[1:], [("body", "hello")])
refused("OTSParameterInvalid", lambda: ots.put_row("inbox", wrong, IGNORE), 400)
equal(len(inbox()), 23)
