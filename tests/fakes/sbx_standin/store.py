"""What survives the daemon: sandboxes, policy, settings, secrets' names, templates. One JSON file, replaced at every change."""
import copy
import json
import os
import threading
from datetime import datetime, timezone


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def fresh():
    return {
        "format": 1, "logged_in": True, "user": "standin",
        "policy": {"initialized": None, "rules": []}, "log": [],
        "sandboxes": {}, "half_created": [], "templates": [], "secrets": [],
        "settings": {"ssh.agentForwardingEnabled": True, "telemetry.enabled": True, "clone.sshKeySigning": False},
        "mcp": [],
    }


class Store:
    """data is guarded by lock; whoever changed it calls save() before letting go."""

    def __init__(self, directory):
        self.directory = directory
        self.path = os.path.join(directory, "state.json")
        self.lock = threading.RLock()
        self.stale = None
        try:
            with open(self.path) as file:
                self.data = {**fresh(), **json.load(file)}
        except FileNotFoundError:
            self.data = fresh()

    def save(self):
        with self.lock:
            with open(self.path + ".new", "w") as file:
                json.dump(self.data, file)
            os.replace(self.path + ".new", self.path)

    def sandbox(self, name):
        """The record, or None."""
        with self.lock:
            return self.data["sandboxes"].get(name)

    def snapshot(self):
        with self.lock:
            return copy.deepcopy(self.data)


def new_id():
    """A random UUID (version 4)."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"
