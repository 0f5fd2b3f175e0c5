"""Daemons on the sbx driver: over the stand-in tests/fakes/sbx, or, with CHAT2SHELL_E2E_SBX=PROGRAM, over a real sbx. Asked for
a real one that is not there, tests fail: they do not skip. CHAT2SHELL_E2E_CODEXPRO=DIR (a directory with dist/http.js) puts the
real CodexPro into the stand-in's sandboxes."""
import atexit
import json
import os
import shutil
import subprocess
import tempfile

from c2s import BUILD, ROOT, Daemon, Mcp, check, equal, until

REAL = os.environ.get("CHAT2SHELL_E2E_SBX")
STANDIN = os.path.join(ROOT, "tests/fakes/sbx")
TEMPLATE = "chat2shell-codexpro:0.30.0"
_home = None


def program():
    if not REAL:
        return STANDIN
    found = shutil.which(REAL)
    check(found, f"CHAT2SHELL_E2E_SBX={REAL}: there is no such program")
    return found


def environment():
    """What sbx needs to find its state: the stand-in gets a home of its own, once for the whole script."""
    global _home
    if REAL:
        return {name: value for name, value in os.environ.items() if not name.startswith("CHAT2SHELL_")}
    if not _home:
        _home = tempfile.mkdtemp(prefix="c2s-sbx-")
        atexit.register(_end_standin)
    more = {"SBX_STANDIN_GUEST": os.path.join(BUILD, "chat2shell-guest"), "HOME": _home}
    if os.environ.get("CHAT2SHELL_E2E_CODEXPRO"):
        more["SBX_STANDIN_CODEXPRO"] = os.environ["CHAT2SHELL_E2E_CODEXPRO"]
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **more}


def _end_standin():
    subprocess.run([STANDIN, "daemon", "stop"], env=environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    shutil.rmtree(_home, ignore_errors=True)


def sbx(*argv, ok=True, timeout=60):
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


def make_ready():
    """A policy, as an operator would set it once, and the template, by the project's own setup."""
    if not REAL:
        sbx("policy", "init", "balanced", ok=False)
    daemon = SbxDaemon()
    done = daemon.cli("setup", timeout=900)
    equal(done.returncode, 0, f"setup: {done.stdout.decode()[-600:]}{done.stderr.decode()[-600:]}")
    daemon.close()


__all__ = ["REAL", "TEMPLATE", "Mcp", "SbxDaemon", "environment", "make_ready", "program", "sandboxes", "sbx", "until"]
