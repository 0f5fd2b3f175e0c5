"""Templates: root directories saved under a name. template save, load, ls, rm; files are laid out as a docker image archive is."""
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

from . import sandboxes, table
from .errors import CliError
from .store import new_id, now

LIBRARY = "docker.io/library/"
FROM_HOST = ("usr", "proc", "sys", "dev", "bin", "sbin", "lib", "lib32", "lib64", "libx32")  # not taken from an archive
UNPACK_LIMIT = 4 << 30  # bytes of one archive
LS_FLAGS = [("json", "", "switch", "Output in JSON format", (0, 0))]
SAVE_FLAGS = [("output", "o", "one", "Also write a tar archive", (0, 0))]
RM_FLAGS = [("force", "f", "switch", "Do not ask", (0, 0))]


def split_reference(reference):
    """(repository, tag) of NAME[:TAG], with the library prefix left out."""
    reference = reference.removeprefix(LIBRARY)
    repository, colon, tag = reference.rpartition(":")
    return (repository, tag) if colon and "/" not in tag else (reference, "latest")


def directory_of(call, template):
    return os.path.join(call.store.directory, "templates", template["id"])


def known(call, reference):
    repository, tag = split_reference(reference)
    with call.store.lock:
        return next((t for t in call.store.data["templates"] if (t["repository"], t["tag"]) == (repository, tag)), None)


def find(call, reference, pull):
    """The root directory to start from, or None for the agent's own image. There is no registry: a pull always fails."""
    if pull not in ("always", "missing", "never"):
        raise CliError(f"invalid pull policy \"{pull}\": must be one of always, missing, never")
    if not reference:
        return None
    template = known(call, reference)
    if not template:
        raise CliError(f"failed to create sandbox: pull image {reference}: not found")
    if pull == "always":
        call.warn(f"WARNING: could not pull {reference}; using the cached image")
    return directory_of(call, template)


def ls(call, options, words):
    prefix = LIBRARY if call.settings["template_prefix"] else ""
    with call.store.lock:
        rows = [{**t, "repository": t["repository"] if "/" in t["repository"] else prefix + t["repository"]} for t in call.store.data["templates"]]
    if options["json"]:
        shown = [{"repository": t["repository"], "tag": t["tag"], "id": t["image_id"], **{key: t[key] for key in ("flavor", "created_at", "size")}} for t in rows]
        call.print(json.dumps({"images": shown}, indent=2))
        return
    call.print(table.render(["REPOSITORY", "TAG", "IMAGE ID", "FLAVOR", "CREATED"],
                            [[t["repository"], t["tag"], t["image_id"][7:19], t["flavor"], t["created_at"]] for t in rows]))


def save(call, options, words):
    if len(words) != 2:
        raise CliError(f"accepts 2 arg(s), received {len(words)}")
    box = call.sandboxes.get(words[0])
    if box.is_running:
        if not call.confirm(f"Sandbox '{box.name}' is running. Stop it now? (y/N): ", f"sandbox '{box.name}' must be stopped to save it"):
            return
        with box.lock:
            call.sandboxes.halt(box)
    with box.lock:
        record = call.store.sandbox(box.name)
        if not record:
            raise CliError(f"sandbox '{box.name}' not found")
        template = add(call, words[1], record["agent"], lambda target: copy_root(call.sandboxes.root_of(record) + "/fs", target, record))
    if options["output"]:
        write_archive(call.path(options["output"]), directory_of(call, template), template)
    call.print(f"Saved sandbox '{box.name}' as {words[1]}")


def copy_root(root, target, record):
    """Without what belongs to this sandbox alone: mount points, process and device files, the container's own names."""
    subprocess.run(["cp", "-a", "--reflink=auto", root + "/.", target], check=True, stdin=subprocess.DEVNULL, timeout=300)
    for path in ["/proc", "/dev", "/usr", "/run/sandbox", "/etc/hostname", "/etc/hosts"] + [path for path, _ in record["mounts"]]:
        drop_empty(target, path)


def drop_empty(target, path):
    full = os.path.join(target, path.lstrip("/"))
    if os.path.islink(full) or os.path.isfile(full):
        os.unlink(full)
    elif os.path.isdir(full):
        subprocess.run(["find", full, "-depth", "(", "-type", "d", "-o", "-empty", ")", "-delete"], stdin=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=60)


def add(call, reference, flavor, fill):
    """A new template in the place of one with the same name."""
    repository, tag = split_reference(reference)
    template = {"id": new_id(), "repository": repository, "tag": tag, "flavor": flavor, "created_at": now(),
                "image_id": "sha256:" + hashlib.sha256(new_id().encode()).hexdigest(), "size": 0}
    directory = directory_of(call, template)
    os.makedirs(directory)
    try:
        fill(directory)
    except Exception:
        sandboxes.remove_tree(directory)
        raise
    template["size"] = sum(os.lstat(os.path.join(folder, file)).st_size for folder, _, files in os.walk(directory) for file in files)
    old = known(call, reference)
    with call.store.lock:
        call.store.data["templates"] = [t for t in call.store.data["templates"] if t is not old] + [template]
        call.store.save()
    if old:
        sandboxes.remove_tree(directory_of(call, old))
    return template


def write_archive(path, directory, template):
    """What docker image save writes: a manifest and one layer."""
    name = f"{template['repository']}:{template['tag']}"
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Labels": {"flavor": template["flavor"]}}}).encode()
    with tempfile.TemporaryFile(dir=os.path.dirname(path) or ".") as layer:
        with tarfile.open(fileobj=layer, mode="w") as tar:
            tar.add(directory, arcname=".")
        with tarfile.open(path, "w") as tar:
            layer.seek(0, os.SEEK_END)
            member = tarfile.TarInfo("layer.tar")
            member.size = layer.tell()
            layer.seek(0)
            tar.addfile(member, layer)
            manifest = json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode()
            for file, data in (("config.json", config), ("manifest.json", manifest)):
                member = tarfile.TarInfo(file)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def load(call, options, words):
    if len(words) != 1:
        raise CliError(f"accepts 1 arg(s), received {len(words)}")
    path = call.path(words[0])
    try:
        with tarfile.open(path) as tar:
            manifest = json.load(tar.extractfile("manifest.json"))[0]
            reference = manifest["RepoTags"][0]
            add(call, reference, "shell", lambda target: [unpack(tar.extractfile(layer), target) for layer in manifest["Layers"]])
    except (OSError, KeyError, IndexError, TypeError, ValueError, tarfile.TarError) as why:
        raise CliError(f"failed to load {words[0]}: {why}") from None
    call.print(f"Loaded {reference}")


def unpack(stream, target):
    """A layer's files, without the programs of /usr, which the stand-in takes from the host."""
    total = 0
    with tarfile.open(fileobj=stream) as tar:
        for member in tar:
            total += member.size
            if total > UNPACK_LIMIT:
                raise CliError("failed to load: the archive is too big")
            member.name = os.path.normpath(member.name).replace("usr/local", "usr-local", 1)
            first = member.name.split("/")[0]
            if first not in (*FROM_HOST, "..") and not member.isdev():
                extract(tar, member, target)


def extract(tar, member, target):
    """Only below target, whatever links an earlier member made."""
    path = os.path.join(target, member.name.lstrip("/"))
    within = os.path.realpath(os.path.dirname(path)) + "/"
    if not within.startswith(os.path.realpath(target) + "/"):
        return
    linked = os.path.join(target, os.path.normpath(member.linkname).lstrip("/"))
    if os.path.lexists(path) and not member.isdir():
        os.unlink(path)
    if member.isdir():
        if not os.path.isdir(path):
            os.makedirs(path)
        os.chmod(path, member.mode & 0o7777 | 0o700)
    elif member.issym():
        os.symlink(member.linkname, path)
    elif member.islnk() and os.path.isfile(linked) and not os.path.islink(linked):
        os.link(linked, path)
    elif member.isfile():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as out:
            shutil.copyfileobj(tar.extractfile(member), out)
        os.chmod(path, member.mode & 0o7777)


def rm(call, options, words):
    if len(words) != 1:
        raise CliError(f"accepts 1 arg(s), received {len(words)}")
    template = known(call, words[0])
    if not template:
        raise CliError(f"template {words[0]} not found")
    if not call.confirm_or_force(f"Remove template {words[0]}? (y/N): ", options["force"]):
        return
    with call.store.lock:
        call.store.data["templates"].remove(template)
        call.store.save()
    sandboxes.remove_tree(directory_of(call, template))
    call.print(f"Removed {words[0]}")
