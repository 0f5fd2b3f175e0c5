"""create --clone: a clone inside the sandbox of a host repository that is mounted read-only, served by git's daemon, and a remote
sandbox-NAME in the host's repository that points at it while the sandbox runs."""
import os
import socket
import subprocess
import time

from .errors import CliError

SOURCE = "/run/sandbox/source"
GIT_SECONDS = 300


def host_git(repository, *words):
    return subprocess.run(["git", "-c", "safe.directory=*", "-C", repository, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_SECONDS,
                          env={**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"})


def check(path):
    """The top of the repository that the path lies in; CliError where it cannot be cloned."""
    found = host_git(path, "rev-parse", "--show-toplevel")
    if found.returncode != 0:
        raise CliError(f"--clone requires a Git repository, but {path} is not in a Git repository")
    top = os.fsdecode(found.stdout.rstrip(b"\n"))
    if os.path.isfile(os.path.join(top, ".git")):
        raise CliError(f"--clone does not support linked Git worktrees: {top}")
    if os.path.islink(os.path.join(top, ".git")) or not os.path.isdir(os.path.join(top, ".git")):
        raise CliError(f"--clone requires .git to be a real directory: {top}")
    return top


def mounts(record):
    return [(record["clone"]["source"], SOURCE)] if record.get("clone") else []


def run_inside(running, argv, cwd="/", wait=True):
    """The exit status of a command inside that is no session, and what it printed; not waited for: (None, b"")."""
    out, theirs = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    environment = {b"PATH": b"/usr/local/bin:/usr/bin:/bin", b"HOME": b"/home/agent", b"LANG": b"C.UTF-8"}
    try:
        status = running.execute([os.fsencode(word) for word in argv], environment, os.fsencode(cwd), 1000, 1000,
                                 [null, theirs if wait else null, theirs if wait else null])
    finally:
        os.close(theirs)
        os.close(null)
    with os.fdopen(out, "rb") as output, os.fdopen(status, "rb") as ended:
        if not wait:
            return None, b""
        text = output.read(1 << 20)
        code = ended.read(1)
        return (code[0] if code else 137), text


def prepare(running, record):
    """The clone where there is none yet, and the server for it."""
    path = record["clone"]["path"]
    if not record["clone"].get("done"):
        code, text = run_inside(running, ["git", "clone", "--quiet", "--no-hardlinks", SOURCE, path])
        if code != 0:
            raise CliError(f"failed to create sandbox: clone repository: {text.decode(errors='replace').strip()}")
        record["clone"]["done"] = True
    run_inside(running, ["git", "daemon", "--reuseaddr", "--export-all", "--base-path=" + path, "--informative-errors", path, path + "/.git"], wait=False)


def remote_name(record):
    return "sandbox-" + record["name"]


def point_remote(record, row):
    """Adds the remote or rewrites its URL, as the port changes with every start."""
    top, name = record["clone"]["source"], remote_name(record)
    if not row:
        return
    url = f"git://127.0.0.1:{row['host_port']}/"
    host_git(top, "config", f"remote.{name}.url", url)
    host_git(top, "config", "--unset-all", f"remote.{name}.fetch")
    host_git(top, "config", "--add", f"remote.{name}.fetch", f"+refs/heads/*:refs/remotes/{name}/*")
    host_git(top, "config", "--add", f"remote.{name}.fetch", f"+refs/heads/*:refs/sandboxes/{record['name']}/*")


def forget_remote(record):
    """refs/sandboxes/NAME stays, as with the real program."""
    if record.get("clone") and os.path.isdir(record["clone"]["source"]):
        host_git(record["clone"]["source"], "config", "--remove-section", "remote." + remote_name(record))


def wait_until_served(running):
    """For the first fetch to find the server there; bounded, and no failure if it is slow."""
    for _ in range(50):
        with running.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            if probe.connect_ex(("127.0.0.2", 9418)) == 0:
                return
        time.sleep(0.02)
