"""The operator API as a plain client sees it: one connection to the Unix socket, JSON in and out."""
import http.client
import json
import os
import socket
import time
from urllib.parse import urlencode

from c2s import IDLE_SECONDS, PATIENCE

KINDS = "/apis/chat2shell.dev/v1"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
APPLY, JSON = "application/apply-patch+yaml", "application/json"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class OperatorApi:
    def __init__(self, daemon):
        self.connection, self.used_at = UnixConnection(os.path.join(daemon.dir, "data/state/operator.sock")), time.monotonic()

    def call(self, method, path, body=None, content_type=JSON, headers=None, **query):
        """(status, answer, warnings)"""
        whole = path + ("?" + urlencode(query) if query else "")
        text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        head = {**({"Content-Type": content_type} if body is not None else {}), **(headers or {})}
        if time.monotonic() > self.used_at + IDLE_SECONDS:
            self.connection.close()  # the next request opens it again
        self.connection.request(method, whole, text, head)
        response = self.connection.getresponse()
        bytes_read, self.used_at = response.read(), time.monotonic()
        return response.status, json.loads(bytes_read) if bytes_read else None, response.getheader("Warning", "")

    def close(self):
        self.connection.close()
