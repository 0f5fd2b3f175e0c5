"""What a test may set about the stand-in itself: ~/.local/state/sandboxes/standin.json, read again at every call."""
import json
import os

# name: (default, what it is)
KNOWN = {
    "version": ("0.46.0", "the release that is played: 0.38.x, 0.42.x or 0.46.x; SBX_STANDIN_VERSION goes before it"),
    "create_delay_ms": (0, "how long a create takes at least"),
    "start_delay_ms": (0, "how long starting a stopped sandbox takes at least"),
    "stop_delay_ms": (0, "how long a stop takes at least"),
    "auto_stop_s": (30, "seconds after the last session until a sandbox stops by itself; 0 is never"),
    "rm_absent_exit": (1, "exit status of rm for an absent sandbox: 0 or 1"),
    "killed_create": ("finish", "what becomes of a create whose client is killed: finish, half (name taken, not listed) or undo"),
    "list_creating": (False, "list a sandbox while it is being created, with status \"creating\""),
    "stdin_of_orphans": ("open", "stdin of a guest process whose client was killed: open or eof"),
    "template_prefix": (True, "template ls shows docker.io/library/ before names without a slash"),
    "clone_path": ("same", "where --clone puts the clone in the guest: same (the host's path) or a directory"),
    "guest": ("", "the chat2shell-guest binary for the CodexPro stand-in; SBX_STANDIN_GUEST at daemon start goes before it"),
    "check_denied_exit": (0, "exit status of policy check network for a denied target"),
    "banner_at_start": (True, "the three lines when a command starts the daemon"),
}


class BadSettings(Exception):
    pass


class Settings:
    def __init__(self, state):
        self.path = os.path.join(os.path.dirname(os.path.dirname(state)), "standin.json")
        self.stamp, self.values = None, {}

    def refresh(self):
        """Raises BadSettings for a file that cannot be what its author meant."""
        try:
            stat = os.stat(self.path)
        except OSError:
            self.stamp, self.values = None, {}
            return
        stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if stamp == self.stamp:
            return
        self.values, self.stamp = read(self.path), stamp

    def __getitem__(self, name):
        default = KNOWN[name][0]
        return self.values.get(name, default)


def read(path):
    try:
        with open(path) as file:
            values = json.load(file)
    except (OSError, ValueError) as why:
        raise BadSettings(f"{path} cannot be read: {why}") from None
    for name, value in values.items() if isinstance(values, dict) else [("", None)]:
        if name not in KNOWN or not isinstance(value, (int, float) if isinstance(KNOWN[name][0], int) else type(KNOWN[name][0])):
            raise BadSettings(f"{path}: unknown or ill-typed setting {name!r}; known: {', '.join(KNOWN)}")
    return values
