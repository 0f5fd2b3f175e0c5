"""The way out of a sandbox: a proxy on its loopback that answers by the policy. A denied host gets 403, as from the real one; an allowed
host gets 502 with a sentence, as nothing leaves a stand-in's sandbox. Attempts are in policy log."""
import select
import socket
import threading

from . import cmd_policy, policy

PORT = 3128
PROXY = f"http://127.0.0.1:{PORT}"
ENVIRONMENT = {name: value for upper, value in (("HTTP_PROXY", PROXY), ("HTTPS_PROXY", PROXY), ("NO_PROXY", "localhost,127.0.0.0/8,127.0.0.1,::1"))
               for name in (upper, upper.lower())}
HEAD_LIMIT = 16 << 10
SECONDS = 300
AT_ONCE = 16


class Egress:
    def __init__(self, daemon, name, running):
        self.daemon, self.name, self.places = daemon, name, threading.BoundedSemaphore(AT_ONCE)
        self.listener = running.socket(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", PORT))
        self.listener.setblocking(False)
        daemon.relay.run_there(lambda: daemon.relay.watch(self.listener.fileno(), self.accept, select.EPOLLIN))

    def close(self):
        def job():
            self.daemon.relay.forget(self.listener.fileno())
            self.listener.close()
        self.daemon.relay.run_there(job)

    def accept(self, _):
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return
        if not self.places.acquire(blocking=False):
            sock.close()
            return
        threading.Thread(target=self.answer, args=(sock,), daemon=True).start()

    def answer(self, sock):
        try:
            with sock:
                sock.settimeout(SECONDS)
                head = b""
                while b"\r\n\r\n" not in head and len(head) < HEAD_LIMIT:
                    part = sock.recv(4096)
                    if not part:
                        return
                    head += part
                status, text = self.judge(head.split(b"\r\n")[0].decode("latin-1"))
                body = text.encode() + b"\n"
                sock.sendall(b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status.encode(), len(body)) + body)
        except OSError:
            pass
        finally:
            self.places.release()

    def judge(self, line):
        """(status line's end, body) for a request line."""
        target = target_of(line)
        if not target:
            return "400 Bad Request", "this is a proxy"
        host, port = target
        with self.daemon.store.lock:
            allowed, rule = policy.decide(self.daemon.store.data["policy"]["rules"], self.name, host, port)
        cmd_policy.note(self.daemon.store, self.name, f"{host}:{port}", allowed, rule)
        if allowed:
            return "502 Bad Gateway", f"{host}:{port} is allowed, but the sbx stand-in has no network"
        return "403 Forbidden", f"Blocked by network policy: {host}:{port}: " + (f"rule {rule['name']}" if rule else "no rule allows it")


def target_of(line):
    """(host, port) of CONNECT host:port or METHOD http://host[:port]/..., or None."""
    words = line.split(" ")
    if len(words) != 3:
        return None
    is_tunnel = words[0] == "CONNECT"
    if not is_tunnel and not words[1].lower().startswith("http://"):
        return None
    place = words[1] if is_tunnel else words[1][7:].split("/")[0].rpartition("@")[2]
    host, port = policy.split_port(place)
    return (host, int(port or 80)) if host and (not port or port.isdecimal()) else None
