"""Raw requests to the MCP endpoint and their exact answers: a request is bytes on a socket of its own, an answer its status,
headers and body as they came. What cannot be known beforehand is said by a matcher."""
import json
import re
import socket

from c2s import PATIENCE, check

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
LEGACY, MODERN = REVISIONS[:3], REVISIONS[3]
BOTH = "application/json, text/event-stream"
META = "io.modelcontextprotocol/"
SERVER_INFO = META + "serverInfo"


# ---- matchers ---------------------------------------------------------------------------------------------------------------
class Match:
    """Stands for a value that varies: equal to whatever the test function takes."""

    def __init__(self, what, takes):
        self.what, self.takes = what, takes

    def __eq__(self, other):
        return bool(self.takes(other))

    __hash__ = None

    def __repr__(self):
        return f"<{self.what}>"


ANY = Match("anything", lambda value: True)
TEXT = Match("a text", lambda value: isinstance(value, str) and value)


def having(**members):
    """An object with these members, and maybe more."""
    return Match(f"an object with {members}", lambda value: isinstance(value, dict) and all(k in value and members[k] == value[k] for k in members))


def saying(*words):
    return Match(f"a text with {words}", lambda value: isinstance(value, str) and all(word in value for word in words))


def without(*names):
    return Match(f"an object without {names}", lambda value: isinstance(value, dict) and not any(name in value for name in names))


def all_of(*matchers):
    return Match(f"all of {matchers}", lambda value: all(matcher == value for matcher in matchers))


# ---- requests ---------------------------------------------------------------------------------------------------------------
def message(method, params=None, id=7, **more):  # noqa: A002 - the protocol's word
    """A JSON-RPC message as text. id: a value, or raw JSON text in a Raw; None: a notification."""
    body = {"jsonrpc": "2.0", "method": method, **more}
    if params is not None:
        body["params"] = params
    text = json.dumps(body)
    if id is None:
        return text
    raw = id.text if isinstance(id, Raw) else json.dumps(id)
    return f'{{"id":{raw},{text[1:]}'


class Raw:
    def __init__(self, text):
        self.text = text


def envelope(version=MODERN, **more):
    return {META + "protocolVersion": version, META + "clientCapabilities": {}, **more}


def post(body, headers=(), path="/mcp", defaults=(("Host", "127.0.0.1"), ("Content-Type", "application/json"), ("Accept", BOTH))):
    """The bytes of a POST. headers: pairs; one with a default's name stands in its place (value None: leaves it out)."""
    body = body if isinstance(body, bytes) else body.encode()
    named = {name.lower() for name, _ in headers}
    lines = [(name, value) for name, value in defaults if name.lower() not in named] + [(n, v) for n, v in headers if v is not None]
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines) + f"Content-Length: {len(body)}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def modern_headers(method, name=None, version=MODERN):
    return [("MCP-Protocol-Version", version), ("Mcp-Method", method)] + ([("Mcp-Name", name)] if name is not None else [])


def request(revision, method, params=None, id=7, headers=(), raw=None):  # noqa: A002
    """The bytes of a request as a client of that revision sends it. raw: the body instead of the built one."""
    params = dict(params or {})
    if revision == MODERN:
        params["_meta"] = {**envelope(), **params.get("_meta", {})}
        name = params.get("name") if method == "tools/call" and isinstance(params.get("name"), str) else None
        first = modern_headers(method, name)
    else:
        first = [("MCP-Protocol-Version", revision)]
    return post(raw if raw is not None else message(method, params, id), [*first, *headers])


# ---- answers ----------------------------------------------------------------------------------------------------------------
class Answer:
    def __init__(self, status, headers, body, is_closed):
        self.status, self.headers, self.body, self.is_closed = status, headers, body, is_closed

    def header(self, name):
        values = [value for key, value in self.headers if key.lower() == name.lower()]
        check(len(values) <= 1, f"{name} came {len(values)} times")
        return values[0] if values else None

    def json(self):
        return json.loads(self.body)


class Connection:
    """One socket. read() takes one answer off it."""

    def __init__(self, port, seconds=PATIENCE):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=seconds)
        self.bytes = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused meanwhile: the answer tells why
        return self

    def more(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        self.bytes += data
        return bool(data)

    def line(self, end=b"\r\n"):
        while end not in self.bytes:
            check(self.more(), f"the connection ended within an answer: {self.bytes[:200]!r}")
        line, self.bytes = self.bytes.split(end, 1)
        return line

    def take(self, count):
        while len(self.bytes) < count:
            check(self.more(), f"the connection ended {count - len(self.bytes)} bytes too early")
        data, self.bytes = self.bytes[:count], self.bytes[count:]
        return data

    def chunk(self):
        """The next chunk of a chunked body; b"" is its end."""
        data = self.take(int(self.line(), 16))
        check(self.take(2) == b"\r\n", "a chunk ends with CRLF")
        return data

    def head(self):
        first, *lines = self.line(b"\r\n\r\n").decode("latin-1").split("\r\n")
        check(re.fullmatch(r"HTTP/1\.[01] \d{3} .*", first), f"status line {first!r}")
        return int(first.split()[1]), [tuple(part.strip() for part in line.split(":", 1)) for line in lines]

    def events(self):
        """Server-sent events of a chunked answer whose head was read, as (fields, comments) each, to its end."""
        text = b""
        while chunk := self.chunk():
            text += chunk
            while b"\n\n" in text:
                event, text = text.split(b"\n\n", 1)
                lines = event.decode().split("\n")
                yield dict(line.split(": ", 1) for line in lines if not line.startswith(":")), [line for line in lines if line.startswith(":")]
        check(text.strip() == b"", f"a stream ends with an event, not with {text!r}")

    def read(self, has_body=True):
        status, headers = self.head()
        names = {name.lower(): value for name, value in headers}
        body = b""
        if not has_body:
            pass
        elif names.get("transfer-encoding") == "chunked":
            while chunk := self.chunk():
                body += chunk
        else:
            body = self.take(int(names.get("content-length", 0)))
        return Answer(status, headers, body, names.get("connection") == "close")


def exchange(port, data, has_body=True):
    with Connection(port) as connection:
        return connection.send(data).read(has_body)


def stream(port, data):
    """The head and all events of an answer that is a stream."""
    with Connection(port) as connection:
        status, headers = connection.send(data).head()
        names = {name.lower(): value for name, value in headers}
        check((status, names.get("content-type")) == (200, "text/event-stream"), f"no stream: {status} {names}")
        return names, list(connection.events())


# ---- rows -------------------------------------------------------------------------------------------------------------------
ROWS = []


def error(code, said, id=7, data=None):  # noqa: A002
    """An error answer, whole. said: its message or a matcher; id None: there is none."""
    inner = {"code": code, "message": said}
    if data is not None:
        inner["data"] = data
    return {"jsonrpc": "2.0", **({} if id is None else {"id": id}), "error": inner}


def result(value, id=7):  # noqa: A002
    return {"jsonrpc": "2.0", "id": id, "result": value}


def row(name, data, status, body=None, headers=(), raw=None, has_body=True):
    """One request and its answer. body: the JSON value; raw: the very bytes; neither: an empty body. headers: name to value,
    matcher, or None for one that must not be there."""
    ROWS.append((name, data, status, body, dict(headers), raw, has_body))


JSON_TYPE = {"Content-Type": "application/json"}


def check_row(port, data, status, body, headers, raw, has_body):
    answer = exchange(port, data, has_body)
    check(len(answer.body) <= 100 * 1024 or answer.status < 400, f"an error answer of {len(answer.body)} bytes")
    check(answer.status == status, f"status {answer.status} instead of {status}: {answer.body[:300]!r}")
    if raw is not None:
        check(raw == answer.body, f"body {answer.body[:300]!r} instead of {str(raw)[:300]}")
    elif body is None:
        check(answer.body == b"", f"body {answer.body[:300]!r} instead of none")
    else:
        check(body == answer.json(), f"body {answer.body[:1000]!r} instead of {body!r}")
        check(answer.header("Content-Type") == "application/json", f"Content-Type {answer.header('Content-Type')}")
    for name, wanted in headers.items():
        got = answer.header(name)
        check(wanted == got, f"{name}: {got!r} instead of {wanted!r}")
