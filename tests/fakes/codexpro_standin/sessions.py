"""MCP sessions: who is who, which event stream waits for which answer, and when a session ends."""
import queue
import re
import threading
import time
import uuid

from .guest import Guest

ID_SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


class Stream:
    """An event stream: messages on their way to one client, and the requests that are not answered yet."""

    def __init__(self, pending=()):
        self.pending = set(pending)
        self.messages = queue.Queue()

    def end(self):
        self.messages.put(None)


class Session:
    """One MCP session. Its guest program is its own, so that what a session remembers is, too."""

    def __init__(self, guest):
        self.id = str(uuid.uuid4())
        self.guest = guest
        self.last_seen = time.monotonic()
        self.lock = threading.Lock()  # guards what follows
        self.waiting = {}  # request id: the stream that gets its answer; the newest request of an id has it
        self.cancelled = set()
        self.listener = None
        self.is_closed = False

    def open_stream(self, ids):
        stream = Stream(ids)
        with self.lock:
            if self.is_closed:
                stream.end()
            for request_id in ids:
                self.waiting[request_id] = stream
                self.cancelled.discard(request_id)
        return stream

    def listen(self):
        """The stream for what the server has to say by itself, or None if there is one."""
        with self.lock:
            if self.listener:
                return None
            self.listener = Stream()
            return self.listener

    def stop_listening(self, stream):
        with self.lock:
            if self.listener is stream:
                self.listener = None

    def cancel(self, request_id):
        """A cancelled request is never answered; its stream stays open."""
        with self.lock:
            if request_id in self.waiting:
                self.cancelled.add(request_id)

    def answer(self, request_id, message):
        with self.lock:
            if request_id in self.cancelled:
                self.cancelled.discard(request_id)
                return
            stream = self.waiting.pop(request_id, None)
            if not stream or self.is_closed:
                return
            stream.pending.discard(request_id)
            is_last = not stream.pending
        stream.messages.put(message)
        if is_last:
            stream.end()

    def abandon(self, stream):
        """The client went away."""
        with self.lock:
            self.waiting = {request_id: other for request_id, other in self.waiting.items() if other is not stream}

    def close(self):
        """Ends the session's streams; running commands go on."""
        with self.lock:
            self.is_closed = True
            streams = set(self.waiting.values()) | ({self.listener} if self.listener else set())
            self.waiting = {}
        for stream in streams:
            stream.end()
        self.guest.close()


class Sessions:
    """The live sessions of a server, the least recently used first to go."""

    def __init__(self, settings, guest_program):
        self.settings, self.guest_program = settings, guest_program
        self.lock = threading.Lock()
        self.live = {}

    def create(self):
        session = Session(Guest(self.guest_program, self.settings.root))
        with self.lock:
            self.live[session.id] = session
        self.prune()
        return session

    def find(self, session_id):
        """The session, or None."""
        if not session_id or not ID_SHAPE.fullmatch(session_id):
            return None
        self.prune()
        with self.lock:
            session = self.live.get(session_id)
            if session:
                session.last_seen = time.monotonic()
            return session

    def prune(self):
        oldest_allowed = time.monotonic() - self.settings.http_session_ttl_ms / 1000
        with self.lock:
            gone = [session for session in self.live.values() if session.last_seen < oldest_allowed]
            left = sorted((s for s in self.live.values() if s not in gone), key=lambda session: session.last_seen)
            gone += left[:max(0, len(left) - self.settings.max_http_sessions)]
            for session in gone:
                del self.live[session.id]
        for session in gone:
            session.close()

    def remove(self, session):
        with self.lock:
            self.live.pop(session.id, None)
        session.close()

    def forget_all(self):
        for session in list(self.live.values()):
            self.remove(session)

    def problem(self, session_id):
        """(status, code, sentence) for a session id that leads to no session."""
        if not session_id:
            return 400, -32000, "Bad Request: Mcp-Session-Id header is required"
        if not ID_SHAPE.fullmatch(session_id):
            return 400, -32000, "Bad Request: invalid MCP session id"
        return 404, -32001, "Session not found"
