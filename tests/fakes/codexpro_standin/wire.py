"""Bytes to a client: heads, event streams, chunks, and the wrong answers that tests ask for."""
import queue
import select
import socket
import struct
import time

from .text import to_json

LOOK_S = 0.1
QUICK_S = 0.004
REASONS = {200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
           406: "Not Acceptable", 409: "Conflict", 413: "Payload Too Large", 415: "Unsupported Media Type", 429: "Too Many Requests",
           500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable"}
BASE = [("X-Powered-By", "Express"), ("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "Mcp-Session-Id")]
PRIVATE = [("Pragma", "no-cache"), ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff")]


class ClientGone(Exception):
    """The client closed its connection."""


def head(status, headers):
    lines = [f"HTTP/1.1 {status} {REASONS.get(status, 'Unknown')}"] + [f"{name}: {text}" for name, text in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def date():
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime())


def tail():
    return [("Date", date()), ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5")]


def event(message):
    return b"event: message\ndata: " + to_json(message) + b"\n\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Wire:
    """One client's connection, for writing."""

    def __init__(self, connection, faults):
        self.connection, self.faults = connection, faults

    def send(self, data):
        pause = self.faults.number("TRICKLE_MS") / 1000
        size = max(1, self.faults.number("TRICKLE_BYTES", 1)) if pause else len(data) or 1
        try:
            for at in range(0, len(data), size):
                self.connection.sendall(data[at:at + size])
                time.sleep(pause)
        except OSError as why:
            raise ClientGone from why

    def is_gone(self):
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def check(self):
        if self.is_gone():
            raise ClientGone

    def hang(self):
        """Until the client gives up."""
        while True:
            time.sleep(LOOK_S)
            self.check()

    def reset(self):
        """The connection ends with a reset instead of an end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def next_message(self, stream, seconds):
        """The next message of a stream (None: its end), or queue.Empty; notices when the client goes."""
        end = time.monotonic() + seconds
        while True:
            try:
                return stream.messages.get(timeout=max(0, min(LOOK_S, end - time.monotonic())))
            except queue.Empty:
                self.check()
                if time.monotonic() >= end:
                    raise

    def stream_headers(self, session_id):
        return BASE + [("cache-control", "no-cache, no-transform")] + PRIVATE + [
            ("connection", "keep-alive"), ("content-type", "text/event-stream"), ("mcp-session-id", session_id), ("x-accel-buffering", "no")]

    def send_stream(self, stream, session_id):
        """A whole event stream: at once with its length if all answers are there, else piece by piece with comments between."""
        messages, is_over = self._take_quick(stream)
        headers = self.stream_headers(session_id)
        if is_over:
            body = b"".join(event(message) for message in messages)
            return self.send(head(200, headers + [("content-length", len(body)), ("Date", date())]) + body)
        self.send(head(200, headers + [("Date", date()), ("Transfer-Encoding", "chunked")]))
        for message in messages:
            self.send(chunk(event(message)))
        self._follow(stream)
        return self.send(b"0\r\n\r\n")

    def _take_quick(self, stream):
        messages = []
        try:
            while True:
                message = self.next_message(stream, QUICK_S)
                if message is None:
                    return messages, True
                messages.append(message)
        except queue.Empty:
            return messages, False

    def _follow(self, stream):
        pause = self.faults.number("KEEPALIVE_MS", 15000) / 1000
        while True:
            try:
                message = self.next_message(stream, pause)
            except queue.Empty:
                self.send(chunk(b": keepalive\n\n"))
                continue
            if message is None:
                return
            self.send(chunk(event(message)))

    def collect(self, stream):
        """All messages of a stream."""
        messages = []
        while True:
            try:
                message = self.next_message(stream, 60)
            except queue.Empty:
                continue
            if message is None:
                return messages
            messages.append(message)

    def send_whole(self, headers, body, status=200):
        self.send(head(status, headers + [("Content-Length", len(body))] + tail()) + body)

    def send_json(self, value, status=200, more=()):
        self.send_whole(BASE + [("Cache-Control", "no-store")] + PRIVATE + list(more) + [("Content-Type", "application/json; charset=utf-8")],
                        to_json(value), status)

    def send_text(self, text, status, more=(), kind="text/html; charset=utf-8"):
        self.send_whole(BASE + [("Cache-Control", "no-store")] + PRIVATE + list(more) + [("Content-Type", kind)], text.encode(), status)

    def send_error(self, status, code, message, is_head=False):
        self._send_error(status, code, message, ("Content-Type", "application/json; charset=utf-8"), is_head)

    def send_rejection(self, status, code, message, is_head=False):
        more = [("Allow", "GET, POST, DELETE")] if status == 405 else []
        self._send_error(status, code, message, ("content-type", "application/json"), is_head, more)

    def _send_error(self, status, code, message, kind, is_head, more=()):
        body = to_json({"jsonrpc": "2.0", "error": {"code": code, "message": message}, "id": None})
        headers = BASE + [("Cache-Control", "no-store")] + PRIVATE + list(more) + [kind, ("Content-Length", len(body))] + tail()
        self.send(head(status, headers) + (b"" if is_head else body))

    def send_nothing(self, status):
        headers = BASE + [("Cache-Control", "no-store")] + PRIVATE + tail() + [("Transfer-Encoding", "chunked")]
        self.send(head(status, headers) + b"0\r\n\r\n")
