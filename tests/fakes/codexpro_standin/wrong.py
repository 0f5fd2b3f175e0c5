"""Wrong answers to calls: one function for each word of the fault BODY. Each gets the wire, the head of an event stream
and the right answer, and says whether the connection is still of use."""
import time

from .text import to_json
from .wire import chunk, date, event, head

HUGE = 64 * 1024 * 1024


def whole(wire, headers, body):
    wire.send(head(200, headers + [("content-length", len(body)), ("Date", date())]) + body)
    return True


def start_chunks(wire, headers):
    wire.send(head(200, headers + [("Date", date()), ("Transfer-Encoding", "chunked")]))


def body_of(make):
    """A wrong answer whose bytes the function makes from the right message."""
    return lambda wire, headers, message: whole(wire, headers, make(message))


def html(wire, headers, message):
    return whole(wire, [(name, "text/html" if name == "content-type" else text) for name, text in headers], b"<html><body>It works!</body></html>")


def truncated(wire, headers, message):
    start_chunks(wire, headers)
    body = event(message)
    wire.send(chunk(body[:len(body) // 2]))
    return False


def short(wire, headers, message):
    body = event(message)
    wire.send(head(200, headers + [("content-length", len(body) + 1000), ("Date", date())]) + body)
    return False


def reset(wire, headers, message):
    truncated(wire, headers, message)
    wire.reset()
    return False


def oversized(wire, headers, message):
    start_chunks(wire, headers)
    wire.send(chunk(b'event: message\ndata: {"jsonrpc":"2.0","id":' + to_json(message["id"]) + b',"result":{"content":[{"type":"text","text":"'))
    for _ in range(HUGE // 65536):
        wire.send(chunk(b"x" * 65536))
    wire.send(chunk(b'"}]}}\n\n') + b"0\r\n\r\n")
    return True


def endless_of(first, piece):
    def endless(wire, headers, message):
        start_chunks(wire, headers)
        wire.send(chunk(first))
        while True:
            wire.send(chunk(piece))
    return endless


def endless_headers(wire, headers, message):
    wire.send(head(200, headers)[:-2])
    while True:
        wire.send(b"X-More: " + b"y" * 1000 + b"\r\n")
        time.sleep(0.001)


def in_lines(message):
    """The data in several lines, which a client joins with line ends."""
    text = to_json(message)
    parts = text.replace(b',"', b',\n"').split(b"\n") if b"\\n" not in text else [text]
    return b"event: message\n" + b"".join(b"data: " + part + b"\n" for part in parts) + b"\n"


def preamble(message):
    notification = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hello"}}
    return b": hello\n\nretry: 10\nid: 7\nunknown: x\nnocolon\n\n" + event(notification) + b"event: other\ndata: not json\n\n" + event(message)


def rpc_error(message):
    return event({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": "something broke inside"}})


def extra(message):
    """Right, with what nobody was promised: members, and content of other kinds."""
    result = message["result"]
    structured = {**result.get("structuredContent", {}), "token": "t", "inner": {"deep": [1]}}
    more = [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"}, {"type": "image", "data": "no base64", "mimeType": "image/png"}, {"type": "text"}, {"type": "later"}]
    return event({**message, "result": {**result, "structuredContent": structured, "content": more + result["content"], "task": {}, "_meta": {"x": 1}}})


def misfit(message):
    """A CallToolResult whose members have other types than the tool's."""
    return event({**message, "result": {"content": [{"type": "text", "text": "x"}], "structuredContent": {name: [text] for name, text in message["result"].get("structuredContent", {}).items()}}})


def untold(message):
    """A failure that does not say why."""
    return event({**message, "result": {"content": [{"type": "text", "text": ""}], "isError": True}})


WORDS = {
    "extra": body_of(extra),
    "misfit": body_of(misfit),
    "untold": body_of(untold),
    "garbage": body_of(lambda message: b"\x00\xff\xfegarbage\x01" * 50),
    "empty": body_of(lambda message: b": nothing\n\n"),
    "nothing": body_of(lambda message: b""),
    "html": html,
    "not_json": body_of(lambda message: b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\n\n"),
    "not_utf8": body_of(lambda message: event(message).replace(b'"type":"text"', b'"type":"te\xff\xc0xt"')),
    "deep": body_of(lambda message: b"event: message\ndata: " + b"[" * 100000 + b"]" * 100000 + b"\n\n"),
    "truncated": truncated,
    "short": short,
    "reset": reset,
    "oversized": oversized,
    "endless": endless_of(b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"x\":\"", b"x" * 65536),
    "endless_comments": endless_of(b"", b": still here\n\n" * 100),
    "endless_headers": endless_headers,
    "wrong_id": body_of(lambda message: event({**message, "id": "somebody else's"})),
    "twice": body_of(lambda message: event(message) + event(message)),
    "no_result": body_of(lambda message: event({"jsonrpc": "2.0", "id": message["id"]})),
    "result_array": body_of(lambda message: event({"jsonrpc": "2.0", "id": message["id"], "result": []})),
    "crlf": body_of(lambda message: event(message).replace(b"\n", b"\r\n")),
    "cr": body_of(lambda message: event(message).replace(b"\n", b"\r")),
    "split": body_of(in_lines),
    "no_space": body_of(lambda message: event(message).replace(b"data: ", b"data:", 1).replace(b"event: ", b"event:", 1)),
    "bom": body_of(lambda message: b"\xef\xbb\xbf" + event(message)),
    "preamble": body_of(preamble),
    "error": body_of(rpc_error),
}
