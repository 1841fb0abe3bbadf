"""Answers that were changed on their way are noticed by the client: what they carry is signed."""

import base64
import hashlib
import http.server
import threading
import urllib.request

from tablestore import Condition, OTSClientError, Row, RowExistenceExpectation
from world import ENDPOINT, client, columns, equal, table

KEY = [("g", "a"), ("id", 1)]
table(client(), "tampered")
client().put_row("tampered", Row(KEY, [("x", "genuine")]), Condition(RowExistenceExpectation.IGNORE))


def same(headers, body):
    return headers, body


def body(headers, body):
    return headers, body[:-1] + bytes([body[-1] ^ 1])


def body_with_its_md5(headers, body):
    body = body.replace(b"genuine", b"forged!")
    md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
    return {**headers, "x-ots-contentmd5": md5}, body


def request_id(headers, body):
    return {**headers, "x-ots-requestid": "0" + headers["x-ots-requestid"][1:-1] + "x"}, body


def date(headers, body):
    return {**headers, "x-ots-date": headers["x-ots-date"][:-4] + "123Z"}, body


def more(headers, body):
    return {**headers, "x-ots-more": "1"}, body


def other_key(headers, body):
    _, signature = headers["authorization"].split(":")
    return {**headers, "authorization": "OTS another:" + signature}, body


def unsigned(headers, body):
    return {name: value for name, value in headers.items() if name != "authorization"}, body


def without_md5(headers, body):
    return {name: value for name, value in headers.items() if name != "x-ots-contentmd5"}, body


change = same


class Between(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"]))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        request = urllib.request.Request(ENDPOINT + self.path, asked, headers, method="POST")
        with urllib.request.urlopen(request) as answer:
            kept = {name.lower(): value for name, value in answer.headers.items() if name.lower() != "content-length"}
            kept, found = change(kept, answer.read())
            self.send_response_only(answer.status)
        for name, value in kept.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *_):
        pass


between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
threading.Thread(target=between.serve_forever, daemon=True).start()
endpoint = f"http://127.0.0.1:{between.server_address[1]}"
for region in (None, "cn-local"):
    ots = client(endpoint, region=region)
    change = same
    _, row, _ = ots.get_row("tampered", KEY)
    equal(columns(row), {"x": "genuine"})
    for change in (body, body_with_its_md5, request_id, date, more, other_key, unsigned, without_md5):
        try:
            answer = ots.get_row("tampered", KEY)
        except OTSClientError:
            continue
        raise AssertionError(f"{change.__name__} was not noticed: {answer}")
between.shutdown()
