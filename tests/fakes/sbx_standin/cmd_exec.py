"""exec: a command in a sandbox, as a session."""
import os

from . import egress, execio, versions
from .errors import CliError

EXEC_FLAGS = [
    ("interactive", "i", "switch", "Keep STDIN open even if not attached", (0, 0)),
    ("tty", "t", "switch", "Allocate a pseudo-TTY", (0, 0)),
    ("env", "e", "many", "Set environment variables", (0, 0)),
    ("env-file", "", "many", "Read in a file of environment variables", (0, 0)),
    ("user", "u", "one", "Username or UID (format: <name|uid>[:<group|gid>])", (0, 0)),
    ("workdir", "w", "one", "Working directory inside the sandbox", (0, 0)),
    ("privileged", "", "switch", "Give extended privileges to the command", (0, 0)),
    ("detach", "d", "switch", "Detached mode: run command in the background", (0, 0)),
    ("detach-keys", "", "one", "Override the key sequence for detaching", (0, 0)),
]
ROOT, AGENT = (0, 0, "/root"), (1000, 1000, "/home/agent")
USERS = {"root": ROOT, "0": ROOT, "agent": AGENT, "1000": AGENT, "nobody": (65534, 65534, "/")}
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def read_environment(call, options):
    """--env-file in order, then -e; a bare name takes the caller's value and is left out where it has none."""
    found = {}
    lines = []
    for file in options.get("env-file") or []:
        try:
            with open(call.path(file), errors="surrogateescape") as text:
                lines += [line.strip("\r\n") for line in text if line.strip() and not line.lstrip().startswith("#")]
        except OSError as why:
            raise CliError(f"open {file}: {(why.strerror or str(why)).lower()}") from None
    for line in lines + (options.get("env") or []):
        name, equals, value = line.partition("=")
        if not name:
            raise CliError(f"invalid environment variable: {line}")
        if equals:
            found[name] = value
        elif name in call.environment:
            found[name] = call.environment[name]
    return found


def exec_command(call, options, words):
    if options["detach"] and versions.has(call.version, "no_exec_detach"):
        raise CliError("--detach is not supported for exec; omit -d to run the command in the foreground")
    if words[1:2] == ["--"]:
        words = words[:1] + words[2:]
    if len(words) < 2:
        raise CliError(f"requires at least 2 arg(s), only received {len(words)}")
    name, argv = words[0], words[1:]
    box = call.sandboxes.get(name)
    empty = next((number for number, word in enumerate(argv) if not word), None)
    if empty is not None:
        raise CliError(f"request failed: 400 Bad Request: cmd element {empty} is empty")
    return execute(call, box, argv, read_environment(call, options), options["workdir"], options["user"] or "agent", options["tty"], options["detach"])


def find_user(text):
    user, _, group = text.partition(":")
    if user in USERS:
        uid, gid, home = USERS[user]
    elif user.isdecimal():
        uid, gid, home = int(user), 0, "/"
    else:
        raise CliError(f"unable to find user {user}: no matching entries in passwd file")
    if group:
        gid = {"root": 0, "agent": 1000, "docker": 999, "sudo": 27, "nogroup": 65534}.get(group, int(group) if group.isdecimal() else None)
        if gid is None:
            raise CliError(f"unable to find group {group}: no matching entries in group file")
    return uid, gid, home


def default_directory(record):
    if record["clone"]:
        return record["clone"]["path"]
    return record["workspaces"][0] if record["workspaces"] and os.path.isdir(record["workspaces"][0]) else "/home/agent/workspace"


def execute(call, box, argv, extra, workdir, user, terminal, discard):
    """Runs it as a session and copies its stdio; its exit status."""
    uid, gid, home = find_user(user)
    with call.sandboxes.session(box, call) as running:
        record = call.store.sandbox(box.name) or {"env": {}, "clone": None, "workspaces": []}
        environment = {"PATH": GUEST_PATH, "HOME": home, "USER": user.partition(":")[0], "HOSTNAME": box.name, "LANG": "C.UTF-8",
                       **egress.ENVIRONMENT, **record["env"], **extra}
        if terminal:
            environment.setdefault("TERM", call.environment.get("TERM", "xterm"))
        cwd = workdir or default_directory(record)
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
        session = execio.Session(call, discard)
        session.start(lambda *stdio: running.execute([os.fsencode(word) for word in argv], encoded, os.fsencode(cwd), uid, gid, stdio, terminal),
                      bool(call.fault("merge-streams")), terminal)
        return session.run()
