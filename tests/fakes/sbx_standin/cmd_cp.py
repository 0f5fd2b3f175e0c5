"""cp: files between the host and a sandbox, by tar inside it. In: owned by root, mode 0755. Out: symbolic links stay links."""
import io
import os
import tarfile
import threading

from .errors import CliError

FLAGS = [("follow-link", "L", "switch", "Follow symbolic links in SRC", (0, 0))]
LIMIT = 2 << 30  # bytes of one copy out of a sandbox


def split(word):
    """(sandbox or None, path)."""
    name, colon, path = word.partition(":")
    return (name, path) if colon and "/" not in name and name not in (".", "..") else (None, word)


def cp(call, options, words):
    if len(words) != 2:
        raise CliError(f"accepts 2 arg(s), received {len(words)}")
    (from_box, source), (to_box, target) = split(words[0]), split(words[1])
    if (from_box is None) == (to_box is None):
        raise CliError("copying between sandboxes is not supported" if from_box else "one of SRC and DST must be SANDBOX:PATH")
    if not (source if from_box else target).startswith("/"):
        raise CliError("container path must be absolute")
    box = call.sandboxes.get(from_box or to_box)
    with call.sandboxes.session(box, call) as running:
        if to_box:
            copy_in(call, running, call.path(source), target, options["follow-link"])
        else:
            copy_out(running, source, call.path(target), target.endswith("/"), options["follow-link"])


def run_tar(running, argv, stdin=None, stdout=None):
    """(status descriptor, stderr file). As root, since that is who copies."""
    null = os.open("/dev/null", os.O_RDWR)
    read_err, err = os.pipe()
    try:
        status = running.execute([os.fsencode(word) for word in argv], {b"PATH": b"/usr/bin:/bin", b"LC_ALL": b"C.UTF-8"}, b"/", 0, 0,
                                 [null if stdin is None else stdin, null if stdout is None else stdout, err])
    finally:
        os.close(null)
        os.close(err)
    return status, os.fdopen(read_err, "rb")


def end(status, err, what):
    with err, os.fdopen(status, "rb") as ended:
        text = err.read(4096).decode(errors="replace").strip()
        code = ended.read(1)
    if code != b"\0":
        raise CliError(f"{what}: {text or 'the sandbox stopped'}")


def inside(running, argv):
    """The exit status of a small check inside."""
    status, err = run_tar(running, argv)
    with err, os.fdopen(status, "rb") as ended:
        err.read(4096)
        code = ended.read(1)
    return code[0] if code else 137


def copy_in(call, running, source, target, follow):
    if not os.path.lexists(source):
        raise CliError(f"lstat {source}: no such file or directory")
    if inside(running, ["test", "-d", target]) == 0:
        target = os.path.join(target, os.path.basename(source))
    elif inside(running, ["test", "-d", os.path.dirname(target.rstrip("/"))]) != 0:
        raise CliError(f"could not find the file {os.path.dirname(target)} in sandbox")
    folder, name = os.path.split(target.rstrip("/"))
    read_end, write_end = os.pipe()
    status, err = run_tar(running, ["tar", "-x", "-p", "--no-same-owner", "-f", "-", "-C", folder], stdin=read_end)
    os.close(read_end)

    def as_root(member):
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mode = 0o755
        return member
    try:
        with os.fdopen(write_end, "wb") as stream, tarfile.open(fileobj=stream, mode="w|", dereference=follow or not os.path.isdir(source)) as tar:
            tar.add(source, arcname=name, filter=as_root)
    except OSError:
        pass  # tar inside has ended and says why
    end(status, err, "copy to sandbox")


def copy_out(running, source, target, into, follow):
    folder, name = os.path.split(source.rstrip("/"))
    if not name:
        raise CliError("container path must name a file or directory")
    destination = os.path.join(target, name) if os.path.isdir(target) else target
    if into and not os.path.isdir(target):
        raise CliError(f"{target}: no such directory")
    if not os.path.isdir(os.path.dirname(destination)):
        raise CliError(f"{os.path.dirname(destination)}: no such file or directory")
    read_end, write_end = os.pipe()
    status, err = run_tar(running, ["tar", "-c", "-f", "-", "-C", folder or "/"] + (["-h"] if follow else []) + ["--", name], stdout=write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                extract(tar, name, destination)
        except tarfile.TarError:
            pass  # what went wrong inside is said below
        drain = threading.Thread(target=stream.read, daemon=True)
        drain.start()
        drain.join(60)
    end(status, err, "copy from sandbox")


def extract(tar, name, destination):
    """Only plain files, directories and symbolic links, and only below the destination."""
    total = 0
    for member in tar:
        rest = os.path.normpath(member.name).removeprefix(name).lstrip("/")
        if ".." in rest.split("/"):
            continue
        path = os.path.join(destination, rest) if rest else destination
        total += member.size
        if total > LIMIT:
            raise CliError("copy from sandbox: too big")
        if not os.path.realpath(os.path.dirname(path)).startswith(os.path.realpath(os.path.dirname(destination))):
            continue
        if member.isdir():
            os.makedirs(path, exist_ok=True)
        elif member.issym():
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink(member.linkname, path)
        elif member.isfile():
            write(tar.extractfile(member) or io.BytesIO(), path, member.mode)


def write(stream, path, mode):
    if os.path.islink(path):
        os.unlink(path)
    with open(path, "wb") as out:
        while data := stream.read(1 << 20):
            out.write(data)
    os.chmod(path, mode & 0o777)
