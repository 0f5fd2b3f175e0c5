"""Daemons on the sbx driver: over the stand-in tests/fakes/sbx, or, with CHAT2SHELL_E2E_SBX=PROGRAM, over a real sbx. Asked for
a real one that is not there, tests fail: they do not skip. CHAT2SHELL_E2E_CODEXPRO=DIR (a directory with dist/http.js) puts the
real CodexPro into the stand-in's sandboxes."""
import atexit
import json
import os
import shutil
import subprocess

from c2s import PATIENCE, Daemon, check
from sbx import Standin

REAL = os.environ.get("CHAT2SHELL_E2E_SBX")
REAL_CODEXPRO = os.environ.get("CHAT2SHELL_E2E_CODEXPRO")
TEMPLATE = "chat2shell-codexpro:0.30.0"
_shared = None


def open_standin(user=None):
    made = Standin(policy=None, user=user)
    if REAL_CODEXPRO:
        made.environment["SBX_STANDIN_CODEXPRO"] = REAL_CODEXPRO
    made.ok("policy", "init", "balanced")  # an operator's word, once
    return made


def standin():
    """One for the whole script."""
    global _shared
    if not _shared:
        _shared = open_standin()
        atexit.register(_shared.close)
    return _shared


def program():
    if not REAL:
        return standin().program
    found = shutil.which(REAL)
    check(found, f"CHAT2SHELL_E2E_SBX={REAL}: there is no such program")
    return found


def environment():
    """What sbx needs to find its state."""
    if REAL:
        return {name: value for name, value in os.environ.items() if not name.startswith("CHAT2SHELL_")}
    return standin().environment


def sbx(*argv, ok=True, timeout=PATIENCE):
    done = subprocess.run([program(), *argv], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    check(not ok or done.returncode == 0, f"sbx {' '.join(argv)}: {done.stdout[-300:]}{done.stderr[-300:]}")
    return done


def sandboxes():
    """Names that sbx lists."""
    text = sbx("ls", "--json").stdout
    return sorted(row["name"] for row in json.loads(text[text.index("{"):])["sandboxes"])


class SbxDaemon(Daemon):
    def __init__(self, more=None):
        super().__init__(environment={**environment(), "CHAT2SHELL_DRIVER": "sbx", "CHAT2SHELL_SBX": program(), **(more or {})})
        self.known = set(sandboxes())

    def ours(self):
        """Runtimes that appeared since this daemon was made."""
        return [name for name in sandboxes() if name not in self.known]

    def close(self):
        super().close()
        for name in self.ours():
            sbx("rm", "-f", name, ok=False)


class UserDaemon(Daemon):
    """Daemon and stand-in, both run by that ordinary user."""

    def __init__(self, user):
        self.standin = open_standin(user)
        super().__init__(user=user, environment={**self.standin.environment, "CHAT2SHELL_DRIVER": "sbx", "CHAT2SHELL_SBX": self.standin.program})
        self.standin.environment["SBX_STANDIN_GUEST"] = os.path.join(self.build, "chat2shell-guest")  # where that user can read it
        self.standin.ok("daemon", "stop")
        self.standin.ok("ls")  # a daemon takes that from who starts it

    def ours(self):
        return [row["name"] for row in self.standin.json("ls", "--json")["sandboxes"]]

    def close(self):
        super().close()
        self.standin.close()


def set_up(daemon):
    """The template, by the project's own setup. The stand-in's sandboxes need no KVM, and a test machine may have none."""
    done = daemon.cli("setup", timeout=900)
    failed = [line for line in done.stdout.decode().splitlines() if line.startswith("fail") and (REAL or line.split()[1] != "kvm")]
    check(not failed and (done.returncode == 0 or not REAL), f"setup: {failed} {done.stderr.decode()[-600:]}")
    check(b"the template" in done.stderr, f"setup: {done.stderr.decode()[-600:]}")


def make_ready():
    daemon = SbxDaemon()
    set_up(daemon)
    daemon.close()
