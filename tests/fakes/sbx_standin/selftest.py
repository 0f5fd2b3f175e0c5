"""sbx --selftest REAL_SBX: the same probes on the stand-in and on another program, and their differences.

Only sandboxes that the probes made are touched, and rules of those sandboxes; no policy is set up, no daemon is stopped, nobody is
signed in or out on the real side. The stand-in runs in a home of its own. Exit status: 0 no difference, 1 some, 2 it could not run."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
OURS = os.path.join(os.path.dirname(HERE), "sbx")
CALL_SECONDS = 300
NAME = "c2s-selftest"
NORMAL = [
    (r"Starting sandboxd daemon\.\.\.\nDaemon started .*\nLogs: .*\n", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"), (r"\b[0-9a-f]{40,64}\b", "HEX"), (r"v\d+\.\d+\.\d+\S*", "VERSION"),
    (r"\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)", "TIME"), (r"\b\d{4,6}\b", "NUMBER"), (r"\x1b\[[0-9;]*m", ""), (r"[ \t]+\n", "\n"),
]

# (what it asks, arguments, how its output is compared). NAME, WORK and ODD stand for the sandbox and its workspaces; "!" before the
# arguments is a step of the test itself. Ways: text, status (and streams' emptiness), json (its shape), row (ours in ls --json),
# flags (of a help text), lines (their number)
PROBES = [
    ("version", ["version"], "text"),
    ("version as JSON", ["version", "--json"], "json"),
    ("the daemon's status", ["daemon", "status"], "status"),
    ("the daemon's status as JSON", ["daemon", "status", "--json"], "json"),
    ("flags of create", ["create", "--help"], "flags"),
    ("flags of exec", ["exec", "--help"], "flags"),
    ("flags of ports", ["ports", "--help"], "flags"),
    ("flags of rm", ["rm", "--help"], "flags"),
    ("flags of ls", ["ls", "--help"], "flags"),
    ("diagnose as JSON", ["diagnose", "--output", "json"], "json"),
    ("SSH agent forwarding", ["settings", "get", "ssh.agentForwardingEnabled"], "text"),
    ("secrets as JSON", ["secret", "ls", "--json"], "status"),
    ("MCP servers", ["mcp", "ls"], "status"),
    ("templates as JSON", ["template", "ls", "--json"], "status"),
    ("a name with an underscore", ["create", "--name", "c2s_selftest", "shell", "WORK"], "text"),
    ("a name with a plus", ["create", "--name", "c2s+selftest", "shell", "WORK"], "text"),
    ("a name of 64 characters", ["create", "--name", "c" * 64, "shell", "WORK"], "text"),
    ("the reserved name", ["create", "--name", "default", "shell", "WORK"], "text"),
    ("an unknown flag", ["create", "--no-such-flag", "shell", "WORK"], "text"),
    ("an unknown agent", ["create", "--name", "NAME", "no-such-agent", "WORK"], "status"),
    ("a missing workspace", ["create", "--name", "NAME", "shell", "WORK/missing"], "status"),
    ("too little memory", ["create", "--name", "NAME", "-m", "100m", "shell", "WORK"], "status"),
    ("a cloud-only flag", ["create", "--name", "NAME", "--allow-network", "x.org", "shell", "WORK"], "status"),
    ("a template that is nowhere", ["create", "--name", "NAME", "-t", "localhost/c2s-none:1", "--pull", "never", "shell", "WORK"], "status"),
    ("create", ["create", "--name", "NAME", "--cpus", "1", "-m", "1g", "--skills", "off", "--deny-network", "c2s.example", "-p", "3000", "shell", "WORK", "ODD:ro"], "text"),
    ("create of an existing name", ["create", "--name", "NAME", "shell", "WORK"], "text"),
    ("create, quiet", ["create", "-q", "--name", "NAME-2", "shell", "WORK"], "text"),
    ("remove of the second", ["rm", "-f", "NAME-2"], "text"),
    ("its row of ls", ["ls", "--json"], "row"),
    ("ls, quiet", ["ls", "-q"], "status"),
    ("exec: who and where", ["exec", "NAME", "sh", "-c", "id -u; id -un; pwd; echo $HOME"], "text"),
    ("exec: status", ["exec", "NAME", "sh", "-c", "exit 3"], "text"),
    ("exec: streams", ["exec", "NAME", "sh", "-c", "echo out; echo err >&2"], "text"),
    ("exec: missing program", ["exec", "NAME", "c2s-no-such-program"], "text"),
    ("exec: missing directory", ["exec", "-w", "/no/such/directory", "NAME", "true"], "text"),
    ("exec: not executable", ["exec", "NAME", "/etc/passwd"], "text"),
    ("exec: empty argument", ["exec", "NAME", "echo", ""], "text"),
    ("exec: absent sandbox", ["exec", "c2s-selftest-none", "true"], "text"),
    ("exec: detached", ["exec", "-d", "NAME", "true"], "text"),
    ("exec: dashes", ["exec", "NAME", "--", "echo", "-n", "x"], "text"),
    ("exec: as root", ["exec", "-u", "root", "NAME", "id", "-u"], "text"),
    ("exec: unknown user", ["exec", "-u", "c2s-nobody", "NAME", "true"], "status"),
    ("exec: a value of the caller", ["exec", "-e", "C2S_SELFTEST", "NAME", "sh", "-c", "echo $C2S_SELFTEST"], "text"),
    ("exec: stdin without -i", ["exec", "NAME", "cat"], "text"),
    ("exec: what a background process holds open", ["exec", "NAME", "sh", "-c", "sleep 5 & echo started"], "text"),
    ("exec: killed by a signal", ["exec", "NAME", "sh", "-c", "kill -9 $$"], "text"),
    ("exec: sudo", ["exec", "NAME", "sudo", "-n", "id", "-u"], "text"),
    ("exec: a read-only workspace with an odd name", ["exec", "-w", "ODD", "NAME", "sh", "-c", "touch x 2>/dev/null || echo refused"], "text"),
    ("exec: a denied host", ["exec", "NAME", "curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", "http://c2s.example/"], "text"),
    ("ports", ["ports", "NAME"], "lines"),
    ("ports as JSON", ["ports", "NAME", "--json"], "json"),
    ("publish", ["ports", "NAME", "--publish", "3001/tcp4"], "text"),
    ("publish of a wrong word", ["ports", "NAME", "--publish", "1:2:3"], "status"),
    ("publish of a port that another program has", ["ports", "NAME", "--publish", "TAKEN:3002"], "text"),
    ("unpublish", ["ports", "NAME", "--unpublish", "3001"], "text"),
    ("unpublish again", ["ports", "NAME", "--unpublish", "3001"], "status"),
    ("rules of the sandbox", ["policy", "ls", "NAME", "--json"], "status"),
    ("rules of nobody", ["policy", "ls", "c2s-selftest-none", "--json"], "status"),
    ("a denied host", ["policy", "check", "network", "--sandbox", "NAME", "c2s.example"], "text"),
    ("a denied host as JSON", ["policy", "check", "network", "--sandbox", "NAME", "--json", "c2s.example"], "json"),
    ("deny for the sandbox", ["policy", "deny", "network", "--sandbox", "NAME", "d.c2s.example"], "text"),
    ("remove of a rule without a selector", ["policy", "rm", "network", "--force"], "text"),
    ("remove of a rule", ["policy", "rm", "network", "--sandbox", "NAME", "--resource", "d.c2s.example", "--force"], "text"),
    ("the policy's log", ["policy", "log", "NAME", "--json"], "status"),
    ("copy in", ["cp", "FILE", "NAME:/tmp/copied"], "text"),
    ("what was copied in", ["exec", "NAME", "stat", "-c", "%a %s", "/tmp/copied"], "text"),
    ("copy to a relative path", ["cp", "FILE", "NAME:copied"], "text"),
    ("copy into a missing directory", ["cp", "FILE", "NAME:/no/such/file"], "status"),
    ("template of a running sandbox", ["template", "save", "NAME", "c2s-selftest:1"], "status"),
    ("a clone of no repository", ["create", "--clone", "--name", "NAME-3", "shell", "WORK"], "text"),
    ("stop", ["stop", "NAME"], "text"),
    ("stop again", ["stop", "NAME"], "text"),
    ("stop of an absent sandbox", ["stop", "c2s-selftest-none"], "text"),
    ("its row of ls when stopped", ["ls", "--json"], "row"),
    ("ports when stopped", ["ports", "NAME", "--json"], "json"),
    ("exec starts it", ["exec", "NAME", "cat", "/tmp/copied"], "text"),
    ("ports after a restart", ["ports", "NAME", "--json"], "json"),
    ("remove without force", ["rm", "NAME"], "status"),
    ("remove", ["rm", "-f", "NAME"], "text"),
    ("remove of an absent sandbox", ["rm", "-f", "NAME"], "text"),
]


class Subject:
    """One of the two programs. is_standin: it gets a home of its own, and a policy."""

    def __init__(self, program, is_standin, directory):
        self.program, self.is_standin = program, is_standin
        self.work, self.odd, self.file = (os.path.join(directory, name) for name in ("work", "odd näme with 'blanks'", "file"))
        for path in (self.work, self.odd):
            os.makedirs(path)
        with open(self.file, "w") as file:
            file.write("content\n")
        self.environment = {**os.environ, "SBX_NO_TELEMETRY": "1", "C2S_SELFTEST": "a value"}
        if is_standin:
            self.environment["HOME"] = os.path.join(directory, "home")
            os.makedirs(self.environment["HOME"])
            self.run(["policy", "init", "balanced"])

    def run(self, argv):
        """(exit status or None after CALL_SECONDS, stdout, stderr)."""
        try:
            done = subprocess.run([self.program, *argv], stdin=subprocess.DEVNULL, capture_output=True, env=self.environment, timeout=CALL_SECONDS, cwd="/")
        except subprocess.TimeoutExpired:
            return None, "", ""
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def probe(self, argv, way, name, taken):
        words = {"WORK": self.work, "ODD": self.odd, "FILE": self.file, "NAME": name, "TAKEN": str(taken)}
        argv = [re.sub("WORK|ODD|FILE|NAME|TAKEN", lambda found: words[found[0]], word) for word in argv]
        status, out, err = self.run(argv)
        if way in ("json", "row"):
            return status, out.replace(name, "NAME"), err
        return status, self.normal(out, name), self.normal(err, name)

    def normal(self, text, name):
        for path, word in ((self.work, "WORK"), (self.odd, "ODD"), (self.file, "FILE"), (name, "NAME")):
            text = text.replace(path, word)
        for pattern, word in NORMAL:
            text = re.sub(pattern, word, text)
        return text

    def close(self, name):
        for box in (name, name + "-2", name + "-3"):
            self.run(["rm", "-f", box])
        if self.is_standin:
            self.run(["daemon", "stop"])


def shape(value):
    """Keys and types; lists by what their parts have in common."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in sorted(value.items())}
    if isinstance(value, list):
        shapes = []
        for part in map(shape, value):
            if part not in shapes:
                shapes.append(part)
        return shapes
    return type(value).__name__


def first_json(text):
    for start in [found.start() for found in re.finditer(r"[\[{]", text)]:
        try:
            return json.JSONDecoder().raw_decode(text[start:])[0]
        except ValueError:
            continue
    return None


def ours(value):
    rows = value.get("sandboxes", []) if isinstance(value, dict) else value or []
    return next((row for row in rows if row.get("name") == "NAME"), None)


VIEWS = {
    "text": lambda status, out, err: {"exit status": status, "stdout": out, "stderr": err},
    "status": lambda status, out, err: {"exit status": status, "stdout": "something" if out else "nothing", "stderr": "something" if err else "nothing"},
    "json": lambda status, out, err: {"exit status": status, "JSON": shape(first_json(out))},
    "row": lambda status, out, err: {"exit status": status, "row": shape(ours(first_json(out))), "status": (ours(first_json(out)) or {}).get("status")},
    "flags": lambda status, out, err: {"exit status": status, "flags": sorted(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", out + err)) - {"--debug", "--cloud"})},
    "lines": lambda status, out, err: {"exit status": status, "lines": out.count("\n"), "header": out.split("\n")[0]},
}


def differences(stand_in, other, name, taken):
    for what, argv, way in PROBES:
        left, right = (VIEWS[way](*subject.probe(argv, way, name, taken)) for subject in (stand_in, other))
        for part in left:
            if left[part] != right[part]:
                yield what, argv, part, left[part], right[part]


def main(argv):
    if len(argv) != 1:
        print("usage: sbx --selftest REAL_SBX", file=sys.stderr)
        return 2
    program = shutil.which(argv[0])
    if not program:
        print(f"error: {argv[0]} is not there or not executable", file=sys.stderr)
        return 2
    program = os.path.abspath(program)
    found = 0
    with tempfile.TemporaryDirectory(prefix="sbx-selftest-") as directory, socket.create_server(("127.0.0.1", 0)) as foreign:
        name, taken = f"{NAME}-{os.getpid()}", foreign.getsockname()[1]
        subjects = [Subject(OURS, True, os.path.join(directory, "one")), Subject(program, os.path.samefile(program, OURS), os.path.join(directory, "two"))]
        try:
            for what, words, part, left, right in differences(*subjects, name, taken):
                found += 1
                print(f"differs: {what} (sbx {' '.join(words)}): {part}\n    stand-in: {left!r}\n    {program}: {right!r}", flush=True)
        finally:
            for subject in subjects:
                subject.close(name)
    print(f"{len(PROBES)} probes, {found} differences", flush=True)
    return 1 if found else 0
