"""The faults that tests set: where their values come from, when they are due, and the deaths. The program's header lists
them."""
import os
import signal
import sys
import threading
import time

PREFIX = "CODEXPRO_STANDIN_"
FILE = ".codexpro-standin-faults"
# These wait for AFTER_CALLS.
DELAYED = ("DIE", "HANG", "HANG_CALLS", "HANG_AFTER_HEADERS", "STALL_MS", "DELAY_MS", "FORGET", "FORGET_ALWAYS", "STATUS", "ALWAYS_401", "BODY")


def read_file(path):
    try:
        with open(path, errors="replace") as file:
            lines = file.read(65536).splitlines()
    except OSError:
        return {}
    return {name.strip().removeprefix(PREFIX): text.strip() for name, equals, text in (line.partition("=") for line in lines) if equals}


class Faults:
    """What is set at the moment, and how many calls have come."""

    def __init__(self, environment, root):
        self.given = {name.removeprefix(PREFIX): text for name, text in environment.items() if name.startswith(PREFIX)}
        self.path = self.given.get("FAULT_FILE") or os.path.join(root, FILE)
        self.lock = threading.Lock()  # guards what follows
        self.calls = self.answers = 0
        self.done = set()
        self.stalled_until = 0.0

    def values(self):
        return {**self.given, **read_file(self.path)}

    def text(self, name):
        """The fault's value if it is set and due, else an empty string."""
        values = self.values()
        text = values.get(name, "")
        if text in ("", "0"):
            return ""
        if name in DELAYED and "AFTER_CALLS" in values and self.calls <= int(values["AFTER_CALLS"]):
            return ""
        return text

    def number(self, name, default=0):
        return int(self.text(name) or default)

    def once(self, name):
        """True the first time the fault is due."""
        if not self.text(name):
            return False
        with self.lock:
            is_first = name not in self.done
            self.done.add(name)
        return is_first

    def count_call(self):
        with self.lock:
            self.calls += 1

    def count_answer(self):
        with self.lock:
            self.answers += 1
            answers = self.answers
        if self.number("DIE_AFTER_ANSWERS") and answers >= self.number("DIE_AFTER_ANSWERS"):
            self.die()

    def stall(self):
        """Stands still as long as the one stall lasts."""
        if self.once("STALL_MS"):
            with self.lock:
                self.stalled_until = time.monotonic() + self.number("STALL_MS") / 1000
        time.sleep(max(0, self.stalled_until - time.monotonic()))

    def die(self):
        words = self.text("LAST_WORDS")
        if words:
            sys.stderr.write(words.replace("\\n", "\n") + "\n")
            sys.stderr.flush()
        if self.number("DIE_SIGNAL"):
            number = self.number("DIE_SIGNAL")
            if number != signal.SIGKILL:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
            os.kill(os.getpid(), number)
            time.sleep(1)
        os._exit(self.number("DIE_STATUS", 1))

    def start_clock(self):
        """The death that comes by itself."""
        delay = self.number("DIE_AFTER_MS")
        if delay:
            clock = threading.Timer(delay / 1000, self.die)
            clock.daemon = True
            clock.start()
