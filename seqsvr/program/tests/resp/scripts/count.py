"""Counts with redis-py, as it is: count.py PORT."""

import sys

import redis

for protocol in (2, 3):
    key = f"py{protocol}"
    client = redis.Redis(port=int(sys.argv[1]), protocol=protocol, decode_responses=True, client_name=key)
    assert client.ping()
    assert client.client_getname() == key
    assert client.get(key) is None
    assert client.incr(key) == 1
    assert client.incrby(key, 9) == 10
    assert client.get(key) == "10"
    assert client.mget(key, "none") == ["10", None]
    for transaction in (False, True):
        begin = int(client.get(key))
        with client.pipeline(transaction=transaction) as pipeline:
            for _ in range(100):
                pipeline.incr(key)
            assert pipeline.execute() == list(range(begin + 1, begin + 101))
    try:
        client.decr(key)
        raise AssertionError("a counter went back")
    except redis.ResponseError as error:
        assert "counters only grow" in str(error), error
    assert client.info()["server_name"] == "seqsvr"
    assert client.config_get("appendonly") == {"appendonly": "yes"}
    client.close()
print("counted by 2 and 3")
