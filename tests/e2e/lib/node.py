"""The clients of MCP and Kubernetes and the conformance suite that npm has: tests/node/package.json pins them, package-lock.json all that they
need. They are installed below build/node, Node.js itself included, because Debian's is too old for some of them."""
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess

from c2s import ROOT, Failure, Skip

PINNED = os.path.join(ROOT, "tests/node")
PLACE = os.path.join(ROOT, "build/node")
MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
FOUND = {}


def give_up(why):
    """Without them there is nothing to run; where that must not be, it is a failure."""
    raise (Failure if os.environ.get("CHAT2SHELL_REQUIRE_CLIENTS") == "1" else Skip)(why)


def fingerprint():
    digest = hashlib.sha256()
    for name in ("package.json", "package-lock.json"):
        with open(os.path.join(PINNED, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def is_installed(stamp):
    try:
        with open(stamp) as file:
            return file.read() == fingerprint()
    except OSError:
        return False


# What npm says where the pinned list itself is wrong: no matter of the network, so never skipped.
OWN_FAULTS = ("EUSAGE", "ETARGET", "EINTEGRITY", "ERESOLVE", "EJSONPARSE", "EBADPLATFORM")


def run_npm():
    # Not `npm ci`: it refuses a lock file that lacks optional packages of other systems which no registry needs to have.
    argv = ["npm", "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1", "--fetch-timeout=60000"]
    try:
        done = subprocess.run(argv, cwd=PLACE, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        give_up("npm did not install the clients within 15 minutes")
    fault = next((code for code in OWN_FAULTS if f"code {code}" in done.stderr), None)
    if fault:
        raise Failure(f"tests/node cannot be installed ({fault}): {done.stderr[-600:]}")
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        give_up(f"npm cannot install the clients: {' / '.join(lines[:3])[:300]}")


def install():
    """The directory with node_modules. Skip (or Failure) with the reason where there can be none."""
    if not shutil.which("npm"):
        give_up("npm is not installed")
    if platform.machine() not in MACHINES:
        give_up(f"the pinned Node.js is not made for {platform.machine()}")
    os.makedirs(PLACE, exist_ok=True)
    stamp = os.path.join(PLACE, "installed")
    with open(os.path.join(PLACE, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if not is_installed(stamp):
            for name in ("package.json", "package-lock.json"):
                shutil.copy(os.path.join(PINNED, name), PLACE)
            run_npm()
            with open(stamp, "w") as file:
                file.write(fingerprint())
    return PLACE


def place():
    """install(), once; the reason it could not is kept as well."""
    if "place" not in FOUND:
        try:
            FOUND["place"] = install()
        except (Failure, Skip) as why:
            FOUND["place"] = why
    if isinstance(FOUND["place"], Exception):
        raise FOUND["place"]
    return FOUND["place"]


def module(path):
    return os.path.join(place(), "node_modules", path)


def node():
    return module(f"node-linux-{MACHINES[platform.machine()]}/bin/node")


def environment(**more):
    """For programs that start `node` themselves."""
    return {"PATH": f"{os.path.dirname(node())}:/usr/local/bin:/usr/bin:/bin", "HOME": place(), "NO_COLOR": "1", **more}


def version(name):
    """What package.json pins."""
    import json
    with open(os.path.join(PINNED, "package.json")) as file:
        pinned = json.load(file)
    return pinned["dependencies"][name].rsplit("@", 1)[-1]
