"""A person at a terminal: a command on a pty of its own, keys typed, what the screen showed, and the modes it left behind."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from c2s import PATIENCE, check


class Keyboard:
    def __init__(self, argv, environment, columns=80, rows=24):
        self.master, slave = pty.openpty()
        self.screen = b""
        self.slave = slave  # kept open: the terminal outlives the command
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env={"TERM": "xterm-256color", **environment},
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())

    def take(self, seconds):
        """What the screen shows within that time, at most one piece."""
        if not select.select([self.master], [], [], seconds)[0]:
            return b""
        piece = os.read(self.master, 65536)
        self.screen += piece
        return piece

    def see(self, text, seconds=PATIENCE, since=None):
        """Waits until the screen has shown the text behind `since` (default: anything since the last sight), and forgets up to there."""
        text = text if isinstance(text, bytes) else text.encode()
        end = time.monotonic() + seconds
        while text not in self.screen:
            check(time.monotonic() < end, f"the screen does not show {text!r}: {self.screen[-400:]!r}")
            self.take(0.2)
        shown, self.screen = self.screen.split(text, 1)
        return shown

    def drain(self, seconds=PATIENCE):
        """Reads until the command has ended; returns its exit status."""
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            check(time.monotonic() < end, f"it does not end: {self.screen[-400:]!r}")
            self.take(0.1)
        while self.take(0):
            pass
        return self.process.returncode

    def modes_are_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
