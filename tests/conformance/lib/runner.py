"""Runs the scenarios on chat2shell-guest and on another server, and sorts what differs by the list of wanted differences."""
import concurrent.futures
import os
import re
import shutil
import tempfile

import compare
import repository
from clients import Guest, Remote, Trouble
from scenarios import SCENARIOS


def with_root(value, root):
    """The word ROOT at the beginning of a text is the server's own directory."""
    if isinstance(value, str):
        return root + value[4:] if value == "ROOT" or value.startswith("ROOT/") else value
    if isinstance(value, dict):
        return {key: with_root(item, root) for key, item in value.items()}
    return value


class Wanted:
    """The list of known, wanted differences: `PATTERN -> REASON` a line, the pattern a regular expression that is looked for at the
    beginning of `SCENARIO #CALL TOOL PATH: what differs`."""

    def __init__(self, path):
        self.rows, self.used = [], set()
        with open(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not line.startswith("#"):
                    pattern, arrow, reason = line.rstrip("\n").partition(" -> ")
                    if not arrow or not reason.strip():
                        raise Trouble(f"{path}:{number}: a row is PATTERN -> REASON")
                    self.rows.append((re.compile(pattern.strip()), reason.strip()))

    def reason(self, line):
        for pattern, reason in self.rows:
            if pattern.match(line):
                self.used.add(pattern.pattern)
                return reason
        return None

    def unused(self):
        return [pattern.pattern for pattern, _ in self.rows if pattern.pattern not in self.used]


class Side:
    """One of the two: where it works, and how a session with it is opened."""

    def __init__(self, root, home, session):
        self.root, self.home, self.session, self.is_copied = root, home, session, False

    def prepare(self, scenario, template):
        """A fresh copy of the repository; git's own files are copied after the scenarios that may have changed them."""
        if self.is_copied:
            repository.restore(template, self.root, self.is_git_touched)
        else:
            repository.copy(template, self.root)
        self.is_copied, self.is_git_touched = True, scenario.setup is not None
        if scenario.setup:
            scenario.setup(self.root)

    def run(self, scenario, template):
        """What was seen of each call, and the files at the end."""
        self.prepare(scenario, template)
        with self.session() as session:
            calls = []
            for tool, arguments in scenario.calls:
                result = session.call(tool, with_root(arguments, self.root))
                calls.append(compare.seen(tool, result, self.root, self.home))
        return calls, compare.files(self.root, self.home)


def find_root(url, token, named):
    """The other server's directory on this machine, which has to be empty: the scenarios fill and clear it."""
    root = named
    if not root:
        with Remote(url, token) as session:
            root = session.call("server_config", {}).get("structuredContent", {}).get("defaultRoot")
    if not root or not os.path.isdir(root):
        raise Trouble(f"the other server works in {root}, which is no directory here: run this where that directory is, or name it with --root")
    root = os.path.realpath(root)
    if os.listdir(root):
        raise Trouble(f"{root} is not empty: the scenarios clear it, so start the other server on an empty directory")
    return root


def compare_scenario(scenario, ours, theirs, template):
    """Lines `SCENARIO #CALL TOOL PATH: what differs`."""
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        runs = [both.submit(side.run, scenario, template) for side in (ours, theirs)]
        (left, left_files), (right, right_files) = (run.result() for run in runs)
    for number, (tool, _) in enumerate(scenario.calls, 1):
        for path, what in compare.differences(left[number - 1], right[number - 1]):
            yield f"{scenario.name} #{number} {tool} {path}: {what}"
    for path, what in compare.differences(left_files, right_files):
        yield f"{scenario.name} files {path}: {what}"


class Run:
    """One comparison. After it: `lines` are the unwanted differences, `wanted` counts the others."""

    def __init__(self, guest, url, token=None, root=None, home=None):
        self.guest, self.url, self.token, self.home = guest, url, token, home and os.path.realpath(home)
        self.root = find_root(url, token, root)
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="c2s-conformance-"))
        self.lines, self.wanted, self.calls = [], 0, 0

    def sides(self):
        own_root, own_home = os.path.join(self.dir, "ours", "ws"), os.path.join(self.dir, "home")
        os.makedirs(own_root)
        os.makedirs(own_home)
        home = self.home or own_home
        if self.home and not os.path.exists(os.path.join(home, ".codex")):
            repository.put_home(home)
        return (Side(own_root, home, lambda: Guest(self.guest, own_root, home)), Side(self.root, home, lambda: Remote(self.url, self.token)))

    def make_template(self):
        template = os.path.join(self.dir, "template")
        os.mkdir(template)
        repository.make(template)
        return template

    def run(self, wanted, pattern=None):
        try:
            ours, theirs = self.sides()
            template = self.make_template()
            for scenario in SCENARIOS:
                if (scenario.needs_home and not self.home) or (pattern and not re.search(pattern, scenario.name)):
                    continue
                self.calls += len(scenario.calls)
                for line in compare_scenario(scenario, ours, theirs, template):
                    if wanted.reason(line):
                        self.wanted += 1
                    else:
                        self.lines.append(line)
                        yield line
        finally:
            repository.clear(self.root)
            shutil.rmtree(self.dir, ignore_errors=True)
