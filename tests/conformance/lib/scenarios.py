"""The calls that two servers are sent. A scenario starts on a fresh copy of the made repository with a session of its own."""
import os
import shutil

SCENARIOS = []


class Scenario:
    """needs_home: its calls look into the home directory, which the other server must share."""

    def __init__(self, name, calls, setup=None, needs_home=False):
        self.name, self.calls, self.setup, self.needs_home = name, calls, setup, needs_home


def scenario(name, calls, setup=None, needs_home=False):
    SCENARIOS.append(Scenario(name, list(calls), setup, needs_home))


def each(tool, *arguments):
    return [(tool, given) for given in arguments]


def alone(tool, name, *arguments, setup=None):
    """Writers: each call on a fresh repository."""
    for number, given in enumerate(arguments, 1):
        scenario(f"{name} {number}", [(tool, given)], setup)


def put(name, data):
    def setup(root):
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    return setup


def without_git(root):
    shutil.rmtree(os.path.join(root, ".git"))


def changed(root):
    """Changes of every sort that git tells."""
    put("a.txt", b"alpha\nBETA\ngamma\ndelta\n")(root)
    put("new file.txt", b"new\n")(root)
    put("src/fresh.ts", b"export const fresh = 1;\n")(root)
    put("src/alpha.ts", b"export function alpha(n: number) {\n  return n + 2;\n}\n")(root)
    os.unlink(os.path.join(root, "one.txt"))
    os.chmod(os.path.join(root, "B.txt"), 0o755)


from scenarios_read import add as _read  # noqa: E402
from scenarios_write import add as _write  # noqa: E402
from scenarios_work import add as _work  # noqa: E402

for _add in (_read, _write, _work):
    _add()
