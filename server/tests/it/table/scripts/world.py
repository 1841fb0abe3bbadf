"""What every script uses: a client of the server under test, tables, and checks."""

import os

from tablestore import (
    CapacityUnit,
    OTSClient,
    OTSServiceError,
    ReservedThroughput,
    TableMeta,
    TableOptions,
)

ENDPOINT = os.environ["endpoint"]
KEY_ID = os.environ["accessKeyId"]
SECRET = os.environ["secretAccessKey"]
INSTANCE = os.environ["instancename"]

DAY = 86_400


class Once:
    """A retry policy that does not repeat, since a test wants the first answer; but for the rate of operations on tables."""

    def should_retry(self, _times, exception, _operation):
        return getattr(exception, "message", "") == "Too frequent table operations."

    def get_retry_delay(self, *_):
        return 0.2


def client(endpoint=ENDPOINT, key_id=KEY_ID, secret=SECRET, instance=INSTANCE, **options):
    options.setdefault("retry_policy", Once())
    return OTSClient(endpoint, key_id, secret, instance, **options)


def both():
    """A client for each version of signatures, and one for each of the encoders of the SDK."""
    return [client(), client(region="cn-local"), client(enable_native=False)]


def table(ots, name, key=(("g", "STRING"), ("id", "INTEGER")), columns=(), **options):
    """Makes a table."""
    meta = TableMeta(name, [tuple(column) for column in key], list(columns))
    ots.create_table(meta, TableOptions(**options), ReservedThroughput(CapacityUnit(0, 0)))
    return name


def refused(code, what, status=None, text=None):
    """Calls `what`, which the server must refuse with this code."""
    try:
        answer = what()
    except OTSServiceError as error:
        assert error.get_error_code() == code, error
        assert status is None or error.get_http_status() == status, (error, error.get_http_status())
        assert text is None or error.get_error_message() == text, error
        assert error.get_request_id(), error
        return error.get_error_message()
    raise AssertionError(f"{code} was expected, and the answer was {answer}")


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def columns(row):
    """The columns of a row as name to value; each has a timestamp."""
    for column in row.attribute_columns:
        equal(len(column), 3)
    return {name: value for name, value, _ in row.attribute_columns}
