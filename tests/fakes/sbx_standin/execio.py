"""A command in a sandbox, with the client's stdio copied to and from it. The guest process belongs to the daemon: when the client is
killed it lives on, its output is read and thrown away, and its stdin stays open (settings: stdin_of_orphans)."""
import fcntl
import os
import pty
import select
import termios
import tty

from .call import Sink

CHUNK = 64 << 10
KILLED = 137


class Outward:
    """From the guest to the client."""

    def __init__(self, source, target):
        self.source, self.target, self.pending = source, Sink(target), b""

    def close(self):
        if self.source is not None:
            os.close(self.source)
            self.source = None

    def fill(self):
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""  # a terminal whose other side is closed
        self.pending = data if self.target else b""
        if not data:
            self.close()
        return bool(data)

    def flush(self):
        """What is pending and fits; a client that does not read any more loses it."""
        if not self.target:
            self.pending = b""
            return
        try:
            self.pending = self.pending[self.target.write_some(self.pending):]
        except OSError:
            self.pending = b""

    def abandon(self):
        self.pending = b""
        if self.target:
            self.target.close()
            self.target = None


class Session:
    """The copy loop of one exec."""

    def __init__(self, call, discard=False):
        self.call, self.status, self.client_gone, self.discard = call, None, False, discard
        self.stdin, self.typed, self.to_guest = call.descriptors[0], b"", None
        self.outwards = []

    def start(self, launch, merge=False, terminal=False):
        """launch(stdin, stdout, stderr) starts the command and returns its status descriptor."""
        if terminal:
            return self.start_on_terminal(launch)
        read_in, self.to_guest = os.pipe()
        out, write_out = os.pipe()
        err, write_err = (None, os.dup(write_out)) if merge else os.pipe()
        try:
            self.status = launch(read_in, write_out, write_err)
        finally:
            for number in (read_in, write_out, write_err):
                os.close(number)
            self.outwards = [Outward(source, self.call.descriptors[which]) for source, which in ((out, 1), (err, 2)) if source is not None]
        self.set_nonblocking()

    def start_on_terminal(self, launch):
        master, slave = pty.openpty()
        size = b"\0" * 8
        if os.isatty(self.call.descriptors[1]):
            size = fcntl.ioctl(self.call.descriptors[1], termios.TIOCGWINSZ, size)
            fcntl.ioctl(slave, termios.TIOCSWINSZ, size)
        try:
            self.status = launch(slave, slave, slave)
        finally:
            os.close(slave)
            self.to_guest = os.dup(master)
            self.outwards = [Outward(master, self.call.descriptors[1])]
        self.set_nonblocking()

    def set_nonblocking(self):
        for number in [self.to_guest] + [outward.source for outward in self.outwards]:
            os.set_blocking(number, False)
        if self.discard:
            for outward in self.outwards:
                outward.abandon()

    def run(self):
        """Copies until the command has ended and what it printed is out; its exit status."""
        saved = self.raw_terminal()
        try:
            return self.copy()
        finally:
            if saved:
                termios.tcsetattr(self.call.descriptors[0], termios.TCSANOW, saved)
            self.close()

    def raw_terminal(self):
        if len(self.outwards) != 1 or not os.isatty(self.call.descriptors[0]):
            return None
        saved = termios.tcgetattr(self.call.descriptors[0])
        tty.setraw(self.call.descriptors[0], termios.TCSANOW)
        return saved

    def copy(self):
        while True:
            ready = dict(self.wanted().poll())
            if not self.client_gone and self.call.connection.fileno() in ready:
                self.abandon_client()
                continue
            self.serve_input(ready)
            for outward in self.outwards:
                if not outward.pending and outward.source in ready:
                    outward.fill()
                if outward.pending and (not outward.target or outward.target.is_file or outward.target.number in ready):
                    outward.flush()
            if self.status in ready:
                return self.finish(os.read(self.status, 1))

    def wanted(self):
        poll = select.poll()
        poll.register(self.status, select.POLLIN)
        if not self.client_gone:
            poll.register(self.call.connection, select.POLLRDHUP)
        if self.typed:
            poll.register(self.to_guest, select.POLLOUT)
        elif self.stdin is not None:
            poll.register(self.stdin, select.POLLIN)
        masks = {}
        for outward in self.outwards:
            if outward.pending and outward.target:
                masks[outward.target.number] = select.POLLOUT
            elif outward.source is not None:
                masks[outward.source] = select.POLLIN
        for number, mask in masks.items():
            if not (number == self.stdin and mask == select.POLLOUT):
                poll.register(number, mask)
        return poll

    def serve_input(self, ready):
        if self.typed and self.to_guest in ready:
            try:
                self.typed = self.typed[os.write(self.to_guest, self.typed):]
            except BlockingIOError:
                pass
            except OSError:
                self.end_input()
        elif not self.typed and self.stdin is not None and self.stdin in ready:
            try:
                self.typed = os.read(self.stdin, CHUNK)
            except BlockingIOError:
                return
            except OSError:
                self.typed = b""
            if not self.typed:
                self.end_input()

    def end_input(self):
        self.stdin, self.typed = None, b""
        if self.to_guest is not None:
            os.close(self.to_guest)
            self.to_guest = None

    def abandon_client(self):
        """The client was killed: its side closes now, the guest process stays."""
        self.client_gone = True
        self.typed, self.stdin = b"", None
        if self.call.settings["stdin_of_orphans"] == "eof":
            self.end_input()
        for outward in self.outwards:
            outward.abandon()
        self.call.close()

    def finish(self, said):
        """Everything that was written before the end goes out; what a background process still holds open is not waited for."""
        for outward in self.outwards:
            while outward.source is not None:
                self.drain(outward)
                if not outward.fill():
                    break
            self.drain(outward)
        return said[0] if said else KILLED

    def drain(self, outward):
        if outward.pending and outward.target and not self.client_gone:
            poll = select.poll()
            poll.register(self.call.connection, select.POLLRDHUP)
            if not outward.target.is_file:
                poll.register(outward.target.number, select.POLLOUT)
            while outward.pending:
                ready = dict(poll.poll(0 if outward.target.is_file else None))
                if self.call.connection.fileno() in ready:
                    return self.abandon_client()
                outward.flush()
        outward.pending = b""

    def close(self):
        self.end_input()
        if self.status is not None:
            os.close(self.status)
        for outward in self.outwards:
            outward.abandon()
            outward.close()
