"""Who may call: signatures of both versions, keys, instances, clocks."""

import datetime

import tablestore.utils
from tablestore import OTSClientError
from world import INSTANCE, KEY_ID, SECRET, client, equal, refused

for region in (None, "cn-local", "cn-hangzhou"):
    def fresh(**options):
        return client(region=region, **options)

    equal(list(fresh().list_table()), [])
    refused("OTSAuthFailed", fresh(secret=SECRET[:-1] + "!").list_table, 403, "Signature mismatch.")
    refused("OTSAuthFailed", fresh(key_id=KEY_ID + "0").list_table, 403, "The AccessKeyID does not exist.")
    refused("OTSAuthFailed", fresh(instance=INSTANCE + "2").list_table, 403, "The instance is not found.")

    # A clock that is wrong by more than a quarter of an hour: both sides notice.
    read = tablestore.utils.get_now_utc_datetime
    for minutes in (-16, 16):
        tablestore.utils.get_now_utc_datetime = lambda: read() + datetime.timedelta(minutes=minutes)
        try:
            answer = fresh().list_table()
        except OTSClientError as error:
            assert "more than 15 minutes" in error.get_error_message(), error
        else:
            raise AssertionError(f"a wrong clock was not noticed: {answer}")
        tablestore.utils.get_now_utc_datetime = read

    # Headers of one's own are signed with the rest.
    equal(list(fresh(extra_headers={"x-ots-request-tag": "tests"}).list_table()), [])
