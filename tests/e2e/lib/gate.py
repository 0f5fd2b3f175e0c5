"""A loopback port in front of a socket of the daemon, which a test can close, cut and hold up: what a client's network may do."""
import socket
import threading

PIECE = 65536


class Gate:
    """127.0.0.1:port to a Unix socket (a path) or a TCP one ((host, port))."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs = set()  # open connections: (near, far)
        self.is_open = True
        self.flows = threading.Event()  # towards the client
        self.flows.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def dial(self):
        far = socket.socket(socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET)
        far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE)  # little is under way when it is held up
        far.connect(self.target)
        return far

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                if not self.is_open:
                    raise OSError("closed")
                far = self.dial()
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.add((near, far))
            threading.Thread(target=self.relay, args=(near, far, None), daemon=True).start()
            threading.Thread(target=self.relay, args=(far, near, self.flows), daemon=True).start()

    def relay(self, source, target, flows):
        """Until either end is done: then both go, as a lost connection does."""
        try:
            while data := source.recv(PIECE):
                if flows:
                    flows.wait()
                target.sendall(data)
        except OSError:
            pass
        self.end({pair for pair in list(self.pairs) if source in pair})

    def end(self, pairs):
        with self.lock:
            self.pairs -= pairs
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                end.close()

    def cut(self):
        """Every connection is lost; new ones are taken."""
        self.end(set(self.pairs))

    def shut(self):
        """And no new ones are taken, until opened."""
        self.is_open = False
        self.cut()

    def open(self):
        self.is_open = True

    def hold(self):
        """What the daemon says does not arrive, until released."""
        self.flows.clear()

    def release(self):
        self.flows.set()

    def close(self):
        self.listener.close()
        self.release()
        self.cut()
