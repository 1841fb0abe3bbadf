"""Uploads a file with tuspy, as it is, in two goes: upload.py ENDPOINT TOKEN FILE."""

import sys

from tusclient import client

endpoint, token, path = sys.argv[1:]
server = client.TusClient(endpoint, headers={"Authorization": f"Bearer {token}"})
first = server.uploader(path, chunk_size=700_000, metadata={"filename": "tide.bin"})
first.upload(stop_at=1_400_000)
second = server.uploader(path, chunk_size=700_000, url=first.url)
assert second.offset == 1_400_000, second.offset
second.upload()
print("uploaded", second.url)
