"""The HTTP server: routes, tokens, bodies, sessions; one thread a connection, one more a request."""
import hmac
import html
import http.server
import json
import socket
import socketserver
import sys
import threading
import time
import urllib.parse

from . import rpc, wrong
from .bodies import BodyReader
from .refusals import Answered, Refused, Rejected
from .wire import BASE, ClientGone, Wire, date, head

IDLE_S = 5
REQUEST_S = 300
FAILURES_ALLOWED = 10
WINDOW_S = 60
PAGE = "<!DOCTYPE html>\n<title>CodexPro stand-in</title>\n<p>An MCP server for tests, at /mcp.</p>\n"
NOT_FOUND = ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n</head>\n<body>\n'
             "<pre>Cannot {} {}</pre>\n</body>\n</html>\n")
ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>\n'


class Doorkeeper:
    """Tokens, and who has guessed too often."""

    def __init__(self, token):
        self.token = token.encode(errors="surrogateescape") if token else None
        self.lock = threading.Lock()
        self.failures = {}

    def is_right(self, given):
        return isinstance(given, str) and hmac.compare_digest(given.encode(errors="surrogateescape"), self.token)

    def admits(self, authorization, query):
        if not self.token:
            return True
        scheme, bearer = [*(authorization or "").strip().split(None, 1), "", ""][:2]
        values = query.get("codexpro_token") or query.get("token") or []
        return (scheme.lower() == "bearer" and self.is_right(bearer.strip())) or (len(values) == 1 and self.is_right(values[0]))

    def count_failure(self, address):
        """Seconds to wait, or 0 while guesses are few."""
        now = time.monotonic()
        with self.lock:
            count, until = self.failures.get(address, (0, 0))
            count, until = (count + 1, until) if until > now else (1, now + WINDOW_S)
            self.failures[address] = (count, until)
        return max(1, int(until - now + 0.999)) if count > FAILURES_ALLOWED else 0


class Handler(BodyReader, http.server.BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.wire = Wire(self.connection, self.server.faults)

    def log_message(self, format, *arguments):  # noqa: A002 - the base class' name
        pass

    def send_error(self, code, message=None, explain=None):
        """What is no HTTP ends the connection."""
        self.close_connection = True
        try:
            self.connection.sendall(f"HTTP/1.1 {400 if code < 500 else code} Bad Request\r\nConnection: close\r\n\r\n".encode())
        except OSError:
            pass

    def parse_request(self):
        self.connection.settimeout(REQUEST_S)
        return super().parse_request()

    def handle_one_request(self):
        self.connection.settimeout(IDLE_S)
        try:
            super().handle_one_request()
        except (ClientGone, OSError):
            self.close_connection = True
        except ValueError:  # a length that is no number, chunks that are none
            self.send_error(400)

    def answer(self):
        """Any request."""
        path, _, query = self.path.partition("?")
        started = time.monotonic()
        self.status = 0
        if self.server.settings.logs_requests:
            print(f"[CodexPro] {self.command} {path} received", file=sys.stderr, flush=True)
        self.path_only = path.rstrip("/").lower() or "/"
        self.query = urllib.parse.parse_qs(query, keep_blank_values=True)
        self.is_body_read = False
        try:
            self.route()
        except Rejected as why:
            self.wire.send_rejection(*why.args, is_head=self.command == "HEAD")
        except Refused as why:
            self.wire.send_error(*why.args, is_head=self.command == "HEAD")
        except Answered:
            pass
        if not self.is_body_read and (self.headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in self.headers):
            self.drop_body()
        if self.server.settings.logs_requests:
            print(f"[CodexPro] {self.command} {path} -> {int((time.monotonic() - started) * 1000)}ms", file=sys.stderr, flush=True)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def route(self):
        faults = self.server.faults
        if faults.text("HANG") or (self.path_only == "/healthz" and faults.text("HANG_HEALTH")):
            self.wire.hang()
        faults.stall()
        if self.command == "OPTIONS":
            return self.answer_options()
        is_read = self.command in ("GET", "HEAD")
        if is_read and self.path_only == "/favicon.ico":
            return self.send_page(ICON, "image/svg+xml")
        self.check_token()
        pages = {"/": lambda: self.send_page(PAGE), "/setup": lambda: self.send_page(PAGE), "/healthz": self.answer_health}
        if is_read and self.path_only in pages:
            return pages[self.path_only]()
        if self.path_only == "/mcp" and self.command in ("POST", "GET", "DELETE", "HEAD"):
            return {"POST": self.answer_post, "GET": self.answer_get, "DELETE": self.answer_delete, "HEAD": self.answer_head}[self.command]()
        path = html.escape(urllib.parse.quote(self.path.partition("?")[0], safe="/%!$&'()*+,;=:@~"))
        return self.send_page(NOT_FOUND.format(self.command, path), status=404)

    def send_page(self, text, kind="text/html; charset=utf-8", status=200):
        if self.command == "HEAD":
            text, length = "", len(text.encode())
            return self.wire.send(head(status, BASE + [("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Content-Type", kind),
                                                       ("Content-Length", length), ("Date", date()), ("Connection", "keep-alive")]))
        return self.wire.send_text(text, status, kind=kind)

    def answer_options(self):
        asked = self.headers.get("Access-Control-Request-Headers")
        more = [("Access-Control-Allow-Headers", asked)] if asked else []
        self.wire.send(head(204, [BASE[0], BASE[1], ("Access-Control-Allow-Methods", "GET,HEAD,PUT,PATCH,POST,DELETE"),
                                  ("Vary", "Access-Control-Request-Headers")] + more + [BASE[2], ("Content-Length", 0), ("Date", date()),
                                                                                      ("Connection", "keep-alive"), ("Keep-Alive", "timeout=5")]))

    def check_token(self):
        doorkeeper = self.server.doorkeeper
        if doorkeeper.admits(self.headers.get("Authorization"), self.query) and not self.server.faults.text("ALWAYS_401"):
            return
        wait = doorkeeper.count_failure(self.client_address[0])
        self.drop_body()
        if wait:
            self.wire.send_text("Too Many Authentication Attempts", 429, [("Retry-After", wait)])
        else:
            self.wire.send_text("Unauthorized", 401)
        raise Answered

    def answer_health(self):
        faults = self.server.faults
        time.sleep(faults.number("HEALTH_DELAY_MS") / 1000)
        if faults.number("HEALTH_STATUS"):
            return self.send_page("not well", status=faults.number("HEALTH_STATUS"))
        if self.command == "HEAD":
            return self.send_page(json.dumps(self.server.settings.health(), separators=(",", ":")), "application/json; charset=utf-8")
        return self.wire.send_json(self.server.settings.health())

    # ---- /mcp

    def find_session(self):
        """The session of this request, or Refused."""
        given = self.headers.get("Mcp-Session-Id")
        session = self.server.sessions.find(given)
        if not session:
            raise Refused(*self.server.sessions.problem(given))
        return session

    def check_version(self):
        asked = self.headers.get("MCP-Protocol-Version")
        if asked is not None and asked not in rpc.VERSIONS:
            known = ", ".join(rpc.VERSIONS)
            raise Rejected(400, -32000, f"Bad Request: Unsupported protocol version: {asked} (supported versions: {known})")

    def check_media(self):
        accepts = self.headers.get("Accept") or ""
        if "application/json" not in accepts or "text/event-stream" not in accepts:
            raise Rejected(406, -32000, "Not Acceptable: Client must accept both application/json and text/event-stream")
        if not self.is_json():
            raise Rejected(415, -32000, "Unsupported Media Type: Content-Type must be application/json")

    def answer_post(self):
        faults = self.server.faults
        body = self.parse_body()
        messages = body if isinstance(body, list) else [body]
        is_call = any(isinstance(message, dict) and message.get("method") == "tools/call" for message in messages)
        if is_call:
            faults.count_call()
            self.meet_call_faults()
        if faults.number("STATUS"):
            return self.send_page("this server is out of order", status=faults.number("STATUS"))
        given = self.headers.get("Mcp-Session-Id")
        is_new = given is None and not isinstance(body, list) and rpc.is_initialize(body)
        session = None if is_new else self.find_session()
        self.check_media()
        if body is None or not all(rpc.is_message(message) for message in messages):
            raise Rejected(400, -32700, "Parse error: Invalid JSON-RPC message" if body is not None else "Parse error: Invalid JSON")
        if session and any(rpc.is_initialize(message) for message in messages):
            raise Rejected(400, -32600, "Invalid Request: Server already initialized")
        if session:
            self.check_version()
        return self.serve(session or self.server.sessions.create(), messages, is_call)

    def meet_call_faults(self):
        faults = self.server.faults
        if faults.text("DIE"):
            faults.die()
        if faults.text("HANG") or faults.text("HANG_CALLS"):
            self.wire.hang()
        faults.stall()
        if faults.text("FORGET_ALWAYS") or faults.once("FORGET"):
            self.server.sessions.forget_all()
        if faults.text("ALWAYS_401"):
            self.check_token()

    def serve(self, session, messages, is_call):
        requests = [message for message in messages if rpc.is_request(message)]
        for message in messages:
            if not rpc.is_request(message):
                rpc.notify(message, session)
        if not requests:
            return self.wire.send_nothing(202)
        stream = session.open_stream([request["id"] for request in requests])
        for request in requests:
            threading.Thread(target=self.server.run_request, args=(session, request), daemon=True).start()
        try:
            self.send_answers(session, stream, is_call)
        except ClientGone:
            session.abandon(stream)
            raise
        if is_call:
            self.server.faults.count_answer()

    def send_answers(self, session, stream, is_call):
        faults, headers = self.server.faults, self.wire.stream_headers(session.id)
        if is_call and faults.text("HANG_AFTER_HEADERS"):
            wrong.start_chunks(self.wire, headers)
            self.wire.hang()
        if is_call:
            time.sleep(faults.number("DELAY_MS") / 1000)
        word = faults.text("BODY") if is_call else ""
        if word in wrong.WORDS:
            answers = self.wire.collect(stream)
            if not answers or not wrong.WORDS[word](self.wire, headers, answers[0]):
                self.close_connection = True
        elif faults.text("PLAIN_JSON"):
            answers = self.wire.collect(stream)
            self.wire.send_json(answers[0] if len(answers) == 1 else answers, more=[("mcp-session-id", session.id)])
        else:
            self.wire.send_stream(stream, session.id)

    def answer_get(self):
        session = self.find_session()
        if "text/event-stream" not in (self.headers.get("Accept") or ""):
            raise Rejected(406, -32000, "Not Acceptable: Client must accept text/event-stream")
        self.check_version()
        stream = session.listen()
        if not stream:
            raise Rejected(409, -32000, "Conflict: Only one SSE stream is allowed per session")
        try:
            self.wire.send_stream(stream, session.id)
        finally:
            session.stop_listening(stream)

    def answer_delete(self):
        session = self.find_session()
        self.check_version()
        self.server.sessions.remove(session)
        self.wire.send_nothing(200)

    def answer_head(self):
        self.find_session()
        raise Rejected(405, -32000, "Method not allowed.")


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """All connections of one server."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 511

    def __init__(self, settings, faults, sessions, tools):
        self.settings, self.faults, self.sessions, self.tools = settings, faults, sessions, tools
        self.doorkeeper = Doorkeeper(settings.token)
        self.address_family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        super().__init__((settings.host, settings.port), Handler)

    def run_request(self, session, request):
        session.answer(request["id"], rpc.handle(request, self.tools, session))

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ClientGone, OSError)):
            super().handle_error(request, client_address)
