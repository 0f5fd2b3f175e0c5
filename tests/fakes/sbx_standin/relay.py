"""Published ports: one thread that listens on the host and copies between the host's connections and sockets of the sandbox's
network. Bounded: BUFFER bytes wait in each direction, CONNECTIONS at once for a mapping."""
import collections
import os
import select
import socket
import threading

BUFFER = 256 << 10
CHUNK = 64 << 10
CONNECTIONS = 512
# Not 127.0.0.1: what listens on the guest's loopback address only is not reachable through a published port.
GUEST_ADDRESS = "127.0.0.2"


class End:
    """One side of a copied connection; what it has read and the other side has not yet taken waits in its pending."""

    def __init__(self, sock):
        self.sock, self.pending, self.ended, self.shut, self.other, self.mask, self.listener = sock, b"", False, False, None, 0, None
        self.connecting = False


class Relay(threading.Thread):
    def __init__(self, log):
        super().__init__(name="relay", daemon=True)
        self.log, self.poll, self.handlers, self.jobs = log, select.epoll(), {}, collections.deque()
        self.woken, self.wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.poll.register(self.woken, select.EPOLLIN)
        self.start()

    def run_there(self, job):
        """Runs job in the relay's thread and waits for it."""
        done = threading.Event()
        self.jobs.append((job, done))
        os.write(self.wake, b"x")
        done.wait(10)

    def add(self, listener, target):
        """target() makes a non-blocking socket that is connecting to the guest's port. The relay closes listener in remove()."""
        listener.setblocking(False)
        live = set()
        self.run_there(lambda: self.watch(listener.fileno(), lambda events: self.accept(listener, target, live)))
        return listener, live

    def remove(self, added):
        listener, live = added

        def job():
            self.forget(listener.fileno())
            listener.close()
            for end in list(live):
                self.drop(end)
        self.run_there(job)

    # ---- in the thread ----------------------------------------------------------------------------------------------
    def run(self):
        while True:
            for number, events in self.poll.poll():
                handler = self.handlers.get(number)
                try:
                    if number == self.woken:
                        self.run_jobs()
                    elif handler:
                        handler(events)
                except Exception as why:  # noqa: BLE001 - one connection must not end the others
                    self.log(f"relay: {type(why).__name__}: {why}")

    def run_jobs(self):
        os.read(self.woken, 4096)
        while self.jobs:
            job, done = self.jobs.popleft()
            try:
                job()
            finally:
                done.set()

    def watch(self, number, handler, mask=select.EPOLLIN):
        self.handlers[number] = handler
        self.poll.register(number, mask)

    def forget(self, number):
        if self.handlers.pop(number, None):
            self.poll.unregister(number)

    def accept(self, listener, target, live):
        try:
            near_socket, _ = listener.accept()
        except OSError:
            return
        near_socket.setblocking(False)
        try:
            if len(live) >= 2 * CONNECTIONS:
                raise OSError("too many connections")
            far_socket = target()
        except OSError as why:
            self.log(f"relay: {why}")
            near_socket.close()
            return
        near, far = End(near_socket), End(far_socket)
        near.other, far.other, far.connecting = far, near, True
        for end in (near, far):
            end.live = live
            live.add(end)
            self.watch(end.sock.fileno(), lambda events, end=end: self.on_event(end, events), 0)
        self.arm(near)

    def arm(self, end):
        """Sets what both sides wait for: room to read, something to write."""
        for side in (end, end.other):
            mask = 0
            if not side.ended and len(side.pending) < BUFFER and not side.connecting:
                mask |= select.EPOLLIN
            if side.other.pending or side.connecting:
                mask |= select.EPOLLOUT
            if mask != side.mask:
                self.poll.modify(side.sock.fileno(), mask)
                side.mask = mask

    def on_event(self, end, events):
        try:
            if end.connecting:
                error = end.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    raise OSError(error, os.strerror(error))
                end.connecting = False
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and not end.ended:
                self.fill(end)
            self.flush(end)
            self.flush(end.other)
        except OSError:
            return self.drop(end)
        if end.shut and end.other.shut:
            return self.drop(end)
        return self.arm(end)

    @staticmethod
    def fill(end):
        try:
            data = end.sock.recv(CHUNK)
        except BlockingIOError:
            return
        end.pending += data
        end.ended = end.ended or not data

    @staticmethod
    def flush(end):
        """Writes to end what the other side has read."""
        source = end.other
        if end.connecting:
            return
        if source.pending:
            try:
                source.pending = source.pending[end.sock.send(source.pending):]
            except BlockingIOError:
                return
        if source.ended and not source.pending and not end.shut:
            end.shut = True
            end.sock.shutdown(socket.SHUT_WR)

    def drop(self, end):
        for side in (end, end.other):
            side.live.discard(side)
            self.forget(side.sock.fileno())
            side.sock.close()
