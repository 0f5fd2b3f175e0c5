"""The fault file: ~/.local/state/sandboxes/standin-faults.json makes chosen calls go wrong, by count. ../README.md has the table.

{"faults": [{"on": "create", "argv": ["--name"], "skip": 0, "times": 1, "do": "hang", ...}]}"""
import hashlib
import json
import os
import threading

# action: the further keys that it takes
ACTIONS = {
    # before the command
    "hang": {"when"}, "delay": {"ms", "when"}, "prompt": {"text"}, "session-expired": {"wait"}, "fail": {"text", "exit", "stream"},
    "crash-daemon": {"when"}, "stop-sandbox": {"when", "sandbox"}, "steal-port": {"port", "address"}, "update-pending": set(), "conflict": set(),
    "refuse-name": {"text"}, "unavailable": set(),
    # inside the command
    "create-ghost": set(), "create-half": set(), "create-there": {"text"}, "ls-empty": set(), "ls-stale": set(), "ls-status": {"status", "sandbox"},
    "ports-wrong-interface": {"address"}, "ports-dead": set(), "ports-lost": set(), "ports-renumber": set(), "start-fails": {"text"},
    "merge-streams": set(),
    # what it prints and how it ends
    "banner": {"text"}, "notice": {"text", "stream"}, "garbage": {"text"}, "truncate": {"bytes"}, "json-add": {"keys"}, "json-drop": {"keys"},
    "errors-on-stdout": set(), "exit": {"exit"},
}
COMMON = {"on", "do", "argv", "skip", "times", "comment"}


class BadFaults(Exception):
    pass


class Faults:
    """Counts are kept beside the daemon's state, so that they outlive it; a changed file starts them anew."""

    def __init__(self, state):
        self.path = os.path.join(os.path.dirname(os.path.dirname(state)), "standin-faults.json")
        self.counts_path = os.path.join(state, "standin-fault-counts.json")
        self.lock = threading.Lock()

    def take(self, command, argv, actions=None):
        """The rules that act on this call, their counts used up. command: its words; actions: only these."""
        with self.lock:
            rules, stamp = self.read()
            if not rules:
                return []
            counts = self.read_counts(stamp)
            hits = [rule for number, rule in enumerate(rules)
                    if (actions is None or rule["do"] in actions) and matches(rule, command, argv) and counted(rule, counts, str(number))]
            self.write_counts(stamp, counts)
            return hits

    def read(self):
        try:
            with open(self.path, "rb") as file:
                data = file.read()
        except OSError:
            return [], None
        try:
            rules = json.loads(data)["faults"]
        except (ValueError, KeyError, TypeError) as why:
            raise BadFaults(f"{self.path} is not {{\"faults\": [...]}}: {why}") from None
        for rule in rules:
            check(rule, self.path)
        return rules, hashlib.sha256(data + str(os.stat(self.path).st_mtime_ns).encode()).hexdigest()

    def read_counts(self, stamp):
        try:
            with open(self.counts_path) as file:
                counts = json.load(file)
        except (OSError, ValueError):
            counts = {}
        return counts if counts.get("stamp") == stamp else {"stamp": stamp}

    def write_counts(self, stamp, counts):
        with open(self.counts_path + ".new", "w") as file:
            json.dump(counts, file)
        os.replace(self.counts_path + ".new", self.counts_path)


def check(rule, path):
    action = rule.get("do") if isinstance(rule, dict) else None
    if action not in ACTIONS:
        raise BadFaults(f"{path}: unknown action {action!r}; known: {', '.join(ACTIONS)}")
    extra = set(rule) - COMMON - ACTIONS[action]
    if extra or not isinstance(rule.get("on"), str):
        raise BadFaults(f"{path}: {action}: " + (f"unknown keys {sorted(extra)}" if extra else "\"on\" must be the command, or *"))


def matches(rule, command, argv):
    words = rule["on"].split()
    return (words == ["*"] or command[: len(words)] == words) and all(word in argv for word in rule.get("argv", []))


def counted(rule, counts, number):
    seen = counts.get(number, 0)
    counts[number] = seen + 1
    times = rule.get("times", 1)
    return seen >= rule.get("skip", 0) and (times <= 0 or seen < rule.get("skip", 0) + times)
