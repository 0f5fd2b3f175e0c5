"""A published UDP port: a thread that keeps one socket in the sandbox for each peer, the oldest given up first."""
import os
import select
import threading

from .relay import GUEST_ADDRESS

PEERS = 64


class UdpRelay(threading.Thread):
    def __init__(self, listener, make, port):
        super().__init__(name="udp", daemon=True)
        self.listener, self.make, self.port, self.peers = listener, make, port, {}
        self.ended, self.end = os.pipe2(os.O_CLOEXEC)
        self.start()

    def close(self):
        os.close(self.end)
        self.join(5)

    def run(self):
        try:
            while True:
                sockets = {far.fileno(): (near, far) for near, far in self.peers.items()}
                poll = select.poll()
                for number in (self.listener.fileno(), self.ended, *sockets):
                    poll.register(number, select.POLLIN)
                ready = [number for number, _ in poll.poll()]
                if self.ended in ready:
                    return
                for number in ready:
                    self.pass_on(sockets.get(number))
        finally:
            for sock in [self.listener, *self.peers.values()]:
                sock.close()
            os.close(self.ended)

    def pass_on(self, peer):
        try:
            if peer:
                self.listener.sendto(peer[1].recvfrom(65536)[0], peer[0])
                return
            data, near = self.listener.recvfrom(65536)
            if near not in self.peers:
                if len(self.peers) >= PEERS:
                    self.peers.pop(next(iter(self.peers))).close()
                self.peers[near] = self.make()
            # Not connected: the guest may answer from another of its addresses.
            self.peers[near].sendto(data, (GUEST_ADDRESS, self.port))
        except OSError:
            pass  # datagrams may be lost
