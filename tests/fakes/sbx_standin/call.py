"""One call of the client: what it asked, where its output goes, and the faults that act on it."""
import os
import select
import socket
import stat
import time

from .errors import ClientGone, CliError

CHUNK = 4096  # a write of this size to a pipe that polls as writable does not block


class Sink:
    """The client's stdout or stderr, written without ever blocking the daemon: its flags are shared with others and stay as they are."""

    def __init__(self, number):
        self.number = number
        mode = os.fstat(number).st_mode
        self.is_file = stat.S_ISREG(mode)
        self.socket = socket.socket(fileno=os.dup(number)) if stat.S_ISSOCK(mode) else None

    def write_some(self, data):
        """After it polled as writable: the number of bytes taken. OSError when nobody reads."""
        if self.socket:
            try:
                return self.socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return 0
        return os.write(self.number, data if self.is_file else data[:CHUNK])

    def close(self):
        if self.socket:
            self.socket.close()


def kind_of(number, closed):
    if closed:
        return "closed"
    found = os.fstat(number)
    if stat.S_ISCHR(found.st_mode):
        return "null" if found.st_rdev == os.makedev(1, 3) else "terminal" if os.isatty(number) else "device"
    return "pipe" if stat.S_ISFIFO(found.st_mode) else "socket" if stat.S_ISSOCK(found.st_mode) else "file"


class Call:
    def __init__(self, daemon, connection, message, descriptors):
        self.daemon, self.connection, self.descriptors = daemon, connection, descriptors
        self.argv = [os.fsdecode(word) for word in message["argv"]]
        self.environment = {os.fsdecode(name): os.fsdecode(value) for name, value in message["environment"].items()}
        self.cwd, self.closed, self.pid = os.fsdecode(message["cwd"]), message["closed"], message["pid"]
        self.out, self.err, self.faults, self.command = [], [], [], []
        self.version, self.streamed = None, False

    @property
    def store(self):
        return self.daemon.store

    @property
    def settings(self):
        return self.daemon.settings

    @property
    def sandboxes(self):
        return self.daemon.sandboxes

    def fault(self, action):
        """The rule of the fault file that makes this call do it, or None."""
        return next((rule for rule in self.faults if rule["do"] == action), None)

    def print(self, text):
        self.out.append(text + "\n")

    def warn(self, text):
        self.err.append(text + "\n")

    def path(self, path):
        return os.path.normpath(os.path.join(self.cwd, path))

    # ---- the client, while it lives -----------------------------------------------------------------------------------
    def is_gone(self):
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        return bool(poll.poll(0))

    def wait(self, seconds=None, patient=False):
        """Sleeps; ClientGone when the client is killed meanwhile, unless patient: then the work goes on without it."""
        end = time.monotonic() + seconds if seconds is not None else None
        poll = select.poll()
        if not patient:
            poll.register(self.connection, select.POLLRDHUP)
        while not self.daemon.stopping.is_set():
            left = 1.0 if end is None else min(1.0, end - time.monotonic())
            if left <= 0:
                return
            if poll.poll(left * 1000):
                raise ClientGone
        raise ClientGone

    def write(self, number, data):
        """All of it, to stdout (1) or stderr (2)."""
        sink = Sink(self.descriptors[number])
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        if not sink.is_file:
            poll.register(sink.number, select.POLLOUT)
        try:
            while data:
                events = dict(poll.poll(0 if sink.is_file else None))
                if self.connection.fileno() in events:
                    raise ClientGone
                data = data[sink.write_some(data):]
        except OSError:
            pass  # nobody reads it; the command goes on
        finally:
            sink.close()

    def ask(self, question):
        """What the client's stdin answers to a prompt; "" at its end."""
        self.write(1, question.encode())
        poll = select.poll()
        poll.register(self.connection, select.POLLRDHUP)
        stdin, line = self.descriptors[0], b""
        poll.register(stdin, select.POLLIN)
        while not line.endswith(b"\n") and len(line) < 1024 and not self.daemon.stopping.is_set():
            events = dict(poll.poll(1000))
            if self.connection.fileno() in events:
                raise ClientGone
            if stdin in events:
                part = os.read(stdin, 1)
                if not part:
                    break
                line += part
        return line.decode(errors="replace").strip()

    def confirm(self, question, decline="aborted"):
        """True if answered yes. A declined prompt fails, since 0.45; before, the command just ends."""
        if self.ask(question).lower() in ("y", "yes"):
            return True
        from . import versions
        if versions.has(self.version, "decline_fails"):
            raise CliError(decline)
        self.print(decline)
        return False

    def confirm_or_force(self, question, force):
        """For commands that refuse without a terminal."""
        if force:
            return True
        if not os.isatty(self.descriptors[0]):
            raise CliError("stdin is not a terminal; use --force")
        return self.confirm(question)

    def close(self):
        for number in self.descriptors:
            os.close(number)
        self.descriptors = []
