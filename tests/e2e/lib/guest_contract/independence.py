"""The program by itself: its size, what it needs, and that it runs from a read-only mount as anybody, with a sentence for each
program that is missing."""
import os
import shutil
import struct
import subprocess
import tempfile

import bench
from c2s import Skip, check, equal, test
from clients import Guest

MAX_BYTES = 2 << 20
PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NEEDED = 1
ANYBODY = 54321


def is_sanitized(data):
    return b"__asan_init" in data or b"__tsan_init" in data


def program():
    with open(bench.GUEST, "rb") as file:
        data = file.read()
    if is_sanitized(data):
        raise Skip("a build with a sanitizer is neither small nor static")
    return data


def segments(data):
    """(type, offset, size) of each program header of a 64-bit little-endian ELF file."""
    equal(data[:6], b"\x7fELF\2\1", "64-bit little-endian ELF")
    start, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for index in range(count):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", data, start + index * size)
        yield kind, offset, length


def dynamic_tags(data):
    for kind, offset, length in segments(data):
        if kind == PT_DYNAMIC:
            yield from (struct.unpack_from("<q", data, at)[0] for at in range(offset, offset + length, 16))


@test
def the_stripped_guest_is_smaller_than_two_mebibytes():
    program()
    if not shutil.which("strip"):
        raise Skip("needs strip of binutils")
    with tempfile.TemporaryDirectory(prefix="c2s-contract-") as place:
        target = os.path.join(place, "guest")
        subprocess.run(["strip", "-o", target, bench.GUEST], check=True)
        size = os.path.getsize(target)
    check(size < MAX_BYTES, f"{size} bytes")


@test
def the_guest_is_a_static_pie_that_needs_no_library_and_no_interpreter():
    data = program()
    kinds = [kind for kind, _, _ in segments(data)]
    equal(struct.unpack_from("<H", data, 16)[0], 3, "ELF type: position-independent")
    check(PT_LOAD in kinds and PT_INTERP not in kinds, f"an interpreter is asked for: {kinds}")
    check(DT_NEEDED not in list(dynamic_tags(data)), "a library is needed")


def sandbox(own, *more, uid=ANYBODY, with_programs=True):
    """A guest in bubblewrap: all read-only but the workspace and /tmp, as a user that nobody knows."""
    system = ("/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/alternatives")
    if os.getuid() != 0 and uid != os.getuid():
        uid = os.getuid() + 1
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--uid", str(uid), "--gid", str(uid), "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
             "--ro-bind", bench.GUEST, "/opt/guest", "--bind", own.root, own.root, "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/nonexistent", *more]
    for path in system if with_programs else ():
        words += ["--ro-bind-try", path, path]
    return Guest("/opt/guest", own.root, "/nonexistent", before=(*words, "--remount-ro", "/", "--"))


class Isolated:
    """A bench whose guest runs in that sandbox; the workspace is open to anybody."""

    def __init__(self, *words, **more):
        program()
        if not shutil.which("bwrap"):
            raise Skip("needs bubblewrap")
        self.own = bench.Bench()
        self.own.guest = sandbox(self.own, *words, **more)
        subprocess.run(["chmod", "-R", "a+rwX", self.own.dir], check=True)

    def __enter__(self):
        return self.own.__enter__()

    def __exit__(self, *_):
        self.own.__exit__()


@test
def every_tool_works_from_a_read_only_mount_as_an_unknown_user():
    for tool in bench.ALL:
        if tool in bench.NEEDS_NETWORK:
            continue
        with Isolated() as own:
            own.good(tool, bench.GOOD[tool])


@test
def nothing_but_the_workspace_and_tmp_can_be_written_where_that_was_tried():
    with Isolated() as own:
        command = "id -u; for d in / /opt /usr /etc /nonexistent /var; do touch $d/x 2>/dev/null && echo wrote $d; done; touch /tmp/x x && echo fine"
        answer = own.good("bash", {"command": command})["structuredContent"]
        lines = answer["stdout"].split()
        check(lines[-1:] == ["fine"] and "wrote" not in lines and lines[0] not in ("0",), f"{answer}")


@test
def without_git_bash_and_curl_each_tool_that_needs_one_says_so():
    attachment = {"file": {"download_url": "https://files.oaiusercontent.com/x", "file_id": "file_1"}, "destination": "in.bin"}
    # With a proxy no name has to be resolved before curl is asked for.
    with Isolated("--setenv", "https_proxy", "http://127.0.0.1:9", with_programs=False) as own:
        text = own.bad("bash", bench.GOOD["bash"])
        check("bash" in text and "ENOENT" in text, f"bash: {text}")
        text = own.bad("apply_patch", {"patch": "diff --git a/a.txt b/b.txt\nsimilarity index 100%\nrename from a.txt\nrename to b.txt\n"})
        check("git" in text, f"git for apply_patch: {text}")
        text = own.bad("import_file", attachment)
        check("curl" in text, f"curl: {text}")
        changes = own.good("show_changes", {})["structuredContent"]
        check("git" in changes.get("status_error", ""), f"git for show_changes: {changes}")
        for tool in ("read", "write", "edit", "tree", "search", "inspect_workspace", "open_current_workspace", "view_image", "handoff_to_agent", "export_pro_context"):
            own.good(tool, {**bench.GOOD[tool], **({"old_text": "needle"} if tool == "edit" else {})})
