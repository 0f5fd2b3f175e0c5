"""A daemon that kubectl can reach: its Kubernetes listener is open, for as long as the test runs.
Every kubectl that is found is tried: the one in PATH, those in the directories of CHAT2SHELL_KUBECTL (a list like PATH; each
directory holds a program `kubectl`), and from npm the oldest and the newest that are promised (with --long: every one)."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from c2s import PATIENCE, Daemon, Skip, check, equal, until  # noqa: E402
import packages  # noqa: E402

OLDEST, NEWEST = (1, 27), (1, 33)  # versions whose every command must work without a warning


def version_of(path):
    """(1, 27); None if it is no kubectl."""
    done = subprocess.run([path, "version", "--client", "-o", "json"], capture_output=True, text=True, timeout=PATIENCE)
    match = re.search(r'"gitVersion": *"v(\d+)\.(\d+)', done.stdout)
    return (int(match[1]), int(match[2])) if match else None


def find_programs():
    """{(major, minor): path} of what is there."""
    folders = os.environ.get("CHAT2SHELL_KUBECTL", "").split(":") + os.environ.get("PATH", "").split(":")
    found = {}
    for path in (os.path.join(folder, "kubectl") for folder in folders if folder):
        version = version_of(path) if os.access(path, os.X_OK) else None
        if version:
            found.setdefault(version, path)
    return found


def choose_programs():
    """(programs to try, {version: why it is not tried})"""
    found, left_out = find_programs(), {}
    wanted = packages.pins() if os.environ.get("CHAT2SHELL_TEST_LONG") == "1" else (OLDEST, NEWEST)
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        fetched = {version: pool.submit(packages.fetch, version) for version in wanted if version not in found}
    for version, future in fetched.items():
        try:
            found[version] = future.result()
        except Skip as why:
            left_out[version] = str(why)
    for version in [each for each in found if not OLDEST <= each <= NEWEST]:
        left_out[version] = f"{found.pop(version)} is not of {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return found, left_out


class Kubectl:
    """One program against one daemon, with a home of its own."""

    def __init__(self, path, version, rig):
        self.path, self.version, self.rig = path, version, rig
        self.home = tempfile.mkdtemp(prefix="kubectl-", dir=rig.daemon.dir)
        self.environment = {"PATH": "/usr/bin:/bin", "HOME": self.home, "KUBECONFIG": rig.kubeconfig}

    def __str__(self):
        return f"kubectl {self.version[0]}.{self.version[1]}"

    def start(self, *argv):
        return subprocess.Popen([self.path, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
                                env=self.environment, cwd=self.home)

    def run(self, *argv, code=0, stdin="", errors=""):
        """stdout. stderr must be `errors` (a pattern for the whole of it): a warning is a failure."""
        process = self.start(*argv)
        try:
            out, err = process.communicate(stdin, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        words = f"{self} {' '.join(argv)}"
        equal(process.returncode, code, f"exit code of {words} (stdout {out[-400:]!r}, stderr {err[-800:]!r})")
        check(re.fullmatch(errors, err, re.DOTALL) is not None, f"stderr of {words}: {err[-800:]!r}")
        return out

    def json(self, *argv):
        return json.loads(self.run(*argv, "-o", "json"))


class Rig:
    """The daemon and one program; made when first needed, closed by close()."""

    def __init__(self, path):
        self.daemon = Daemon().start()
        done = self.daemon.cli("kubeconfig", "--output-file", os.path.join(self.daemon.dir, "kubeconfig"))
        equal(done.returncode, 0, f"chat2shell kubeconfig: {done.stderr.decode()}")
        self.kubeconfig = done.stdout.decode().strip()
        self.programs = [Kubectl(path, version_of(path), self)]

    def apply(self, text):
        done = self.daemon.cli("apply", "-f", "-", stdin=text.encode())
        equal(done.returncode, 0, f"chat2shell apply: {done.stderr.decode()}")

    def close(self):
        self.daemon.close()


PROGRAM = []  # the path of the one that this process tries
RIGS = []


def rig():
    if not RIGS:
        RIGS.append(Rig(PROGRAM[0]))
    return RIGS[0]


def close():
    for each in RIGS:
        each.close()


def each_promised():
    return rig().programs


__all__ = ["Skip", "check", "choose_programs", "close", "each_promised", "equal", "rig", "until"]
