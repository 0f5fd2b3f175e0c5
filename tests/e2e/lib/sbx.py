"""An sbx stand-in with a home of its own, for tests: its commands, settings, faults, recorded calls and leftovers."""
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

from c2s import BUILD, PATIENCE, ROOT, check, equal, until

FAKES = os.path.join(ROOT, "tests/fakes")


def find_quick_program():
    """The stand-in's client in C (the target sbx_client), else the one in Python, which does the same at seven times the cost."""
    program = os.path.join(os.path.abspath(BUILD), "tests/standin/sbx")
    return program if os.path.exists(program) else os.path.join(FAKES, "sbx")


QUICK = find_quick_program()


class Standin:
    """user: run it as that (unprivileged) user, from a copy where that user may read it. program: its client, if not the quick one."""

    def __init__(self, policy="balanced", user=None, program=None, **settings):
        self.user = user
        self.home = tempfile.mkdtemp(prefix="sbx-", dir="/var/tmp" if user else None)
        self.program = program or QUICK
        if user:
            entry = pwd.getpwnam(user)
            shutil.copytree(FAKES, os.path.join(self.home, "fakes"), ignore=shutil.ignore_patterns("__pycache__"))
            self.program = os.path.join(self.home, "fakes/sbx")
            os.chown(self.home, entry.pw_uid, entry.pw_gid)
        self.state = os.path.join(self.home, ".local/state/sandboxes/sandboxes/sandboxd")
        self.control = os.path.join(self.home, ".local/state/sandboxes")
        self.environment = {"HOME": self.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "SBX_STANDIN_GUEST": os.path.join(BUILD, "chat2shell-guest")}
        os.makedirs(self.control)
        self.set(**settings)
        if user:
            subprocess.run(["chown", "-R", user, os.path.join(self.home, ".local")], check=True)
        if policy:
            self.ok("policy", "init", policy)

    def set(self, **settings):
        self.write("standin.json", settings)

    def faults(self, *rules):
        self.write("standin-faults.json", {"faults": list(rules)})

    def write(self, name, value):
        path = os.path.join(self.control, name)
        with open(path + ".new", "w") as file:
            json.dump(value, file)
        os.replace(path + ".new", path)

    def argv(self, words):
        as_user = ["setpriv", "--reuid", self.user, "--regid", str(pwd.getpwnam(self.user).pw_gid), "--init-groups", "--"] if self.user else []
        return [*as_user, self.program, *words]

    def run(self, *words, stdin=b"", timeout=PATIENCE, version=None, **environment):
        environment = {**self.environment, **environment, **({"SBX_STANDIN_VERSION": version} if version else {})}
        return subprocess.run(self.argv(words), input=stdin, capture_output=True, timeout=timeout, env=environment, cwd=self.home)

    def start(self, *words, **streams):
        """A call that the test does not wait for."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        return subprocess.Popen(self.argv(words), env=self.environment, cwd=self.home, **streams)

    def ok(self, *words, **more):
        """The stdout of a call that must succeed."""
        done = self.run(*words, **more)
        equal(done.returncode, 0, f"{words}: {done.stdout.decode(errors='replace')[-300:]} {done.stderr.decode(errors='replace')[-300:]}; exit status")
        return done.stdout.decode(errors="surrogateescape")

    def error(self, *words, status=1, **more):
        """The stderr of a call that must fail with that status."""
        done = self.run(*words, **more)
        equal(done.returncode, status, f"{words}: exit status")
        return done.stderr.decode()

    def json(self, *words, **more):
        return json.loads(self.ok(*words, **more))

    def status(self, name):
        return {row["name"]: row["status"] for row in self.json("ls", "--json")["sandboxes"]}.get(name)

    def port(self, name, sandbox_port):
        return next(row["host_port"] for row in self.json("ports", name, "--json") if row["sandbox_port"] == sandbox_port)

    def directory(self, name):
        path = os.path.join(self.home, name)
        os.makedirs(path)
        if self.user:
            os.chown(path, pwd.getpwnam(self.user).pw_uid, -1)
        return path

    def calls(self):
        with open(os.path.join(self.state, "calls.jsonl")) as file:
            return [json.loads(line) for line in file]

    def daemon_pid(self):
        with open(os.path.join(self.state, "sandboxd.pid")) as file:
            return int(file.read())

    def processes(self):
        """What runs for this home: the daemon, sandboxes' outer and inner processes."""
        found, own = [], os.readlink("/proc/self/ns/mnt")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    line = file.read().replace(b"\0", b" ").decode(errors="replace")
                mounts = ""
                if os.readlink(f"/proc/{pid}/ns/mnt") != own:
                    with open(f"/proc/{pid}/mountinfo") as file:
                        mounts = file.read()
            except OSError:
                continue
            if self.home in line or self.home in mounts:
                found.append(f"{pid}: {line[:100]}")
        return found

    def close(self):
        try:
            self.write("standin-faults.json", {"faults": []})
            self.run("daemon", "stop")
            until("no process is left", lambda: not self.processes())
        except Exception:
            try:
                os.kill(self.daemon_pid(), signal.SIGKILL)
            except OSError:
                pass
            raise
        finally:
            shutil.rmtree(self.home, ignore_errors=True)
        check(not os.path.exists(self.home), "the home can be removed")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close()
        except Exception:
            if not kind:
                raise
