"""One running sandbox: namespaces by bubblewrap around init.py, a root directory of its own that outlives it, the host's /usr
read-only. Works for root and for an ordinary user alike, as everything that happens inside is done by init.py."""
import _frozen_importlib_external
import contextlib
import marshal
import os
import select
import shutil
import socket
import stat
import subprocess
import threading

from . import wire
from .errors import CliError

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = ANSWER_SECONDS = 300  # against hanging only: a slow machine makes no call fail
STOP_SECONDS = 10
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOST_ETC = ["alternatives", "ssl", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "protocols", "services", "mime.types",
            "profile", "bash.bashrc", "localtime", "login.defs", "terminfo", "debian_version", "host.conf", "pam.d"]
PASSWD = "root:x:0:0:root:/root:/bin/bash\nagent:x:1000:1000:agent:/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
GROUP = "root:x:0:\nagent:x:1000:\nsudo:x:27:agent\ndocker:x:999:agent\nnogroup:x:65534:\n"
START_FAILED = "failed to start sandbox: start runtime: request failed: 500 Internal Server Error: failed to start runtime"
STANDIN = "/run/sandbox/standin"  # read-only in the guest: init.py and what npm installs


def make_root(directory, name):
    """A new sandbox's root directory, as the shell image has it."""
    for folder in ("etc", "home/agent/workspace", "root", "tmp", "opt", "srv", "run/sandbox", "usr", "proc", "dev", "usr-local/bin", "usr-local/lib",
                   "var/tmp", "var/log", "var/lib", "var/cache"):
        os.makedirs(os.path.join(directory, folder), exist_ok=True)
    for folder in ("tmp", "var/tmp"):
        os.chmod(os.path.join(directory, folder), 0o1777)
    for link in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        if os.path.islink("/" + link) and not os.path.lexists(os.path.join(directory, link)):
            os.symlink("usr/" + link, os.path.join(directory, link))
    for file in os.listdir(os.path.join(HERE, "guest")):
        target = os.path.join(directory, "usr-local/bin", file)
        if not os.path.lexists(target):
            shutil.copyfile(os.path.join(HERE, "guest", file), target)
            os.chmod(target, 0o755)
    write_etc(directory, name)


def write_etc(directory, name):
    texts = {
        "passwd": PASSWD, "group": GROUP, "hostname": name + "\n", "hosts": f"127.0.0.1\tlocalhost {name}\n::1\tlocalhost\n",
        "resolv.conf": "nameserver 127.0.0.1\n",
        "os-release": 'PRETTY_NAME="Docker Sandboxes stand-in (the host\'s programs)"\nID=sbx-standin\nVERSION_ID="1"\n',
        "gitconfig": "[safe]\n\tdirectory = *\n", "shells": "/bin/sh\n/bin/bash\n",
    }
    for file, text in texts.items():
        path = os.path.join(directory, "etc", file)
        if not os.path.lexists(path) or file in ("hostname", "hosts"):
            with open(path, "w") as out:
                out.write(text)


def compile_init(directory):
    """init.py, compiled once and not with every start of a sandbox; its path."""
    with open(HERE + "/init.py", "rb") as file:
        code = compile(file.read(), STANDIN + "/init.py", "exec")
    path = os.path.join(directory, "init.pyc")
    with open(path, "wb") as out:
        out.write(_frozen_importlib_external.MAGIC_NUMBER + bytes(12) + marshal.dumps(code))
    return path


def bubblewrap(root, record, extra_mounts, init, descriptor):
    argv = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--hostname", record["name"], "--cap-drop", "ALL", "--as-pid-1",
            "--bind", root, "/", "--ro-bind", "/usr", "/usr", "--bind", root + "/usr-local", "/usr/local", "--proc", "/proc", "--dev", "/dev"]
    for file in HOST_ETC:
        if os.path.exists("/etc/" + file):
            argv += ["--ro-bind", "/etc/" + file, "/etc/" + file]
    argv += ["--ro-bind", init, STANDIN + "/init.pyc"]
    for source, target in extra_mounts:
        argv += ["--ro-bind", source, target]
    for path, read_only in record["mounts"]:
        argv += ["--ro-bind" if read_only else "--bind", path, path]
    return argv + ["--chdir", "/", "--", "/usr/bin/python3", "-IS", STANDIN + "/init.pyc", str(descriptor)]


class Runtime:
    """Threads: any may call; lock serializes the channel."""

    def __init__(self, root, record, extra_mounts, init, log):
        self.lock = threading.Lock()
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(bubblewrap(root, record, extra_mounts, init, theirs.fileno()), pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env={"PATH": PATH, "LANG": "C.UTF-8"}, cwd="/", start_new_session=True)
        self.channel.settimeout(START_SECONDS)
        try:
            started = self.channel.recv(1) == b"R"
        except OSError:
            started = False
        if not started:
            self.close()
            raise CliError(START_FAILED)
        self.channel.settimeout(None)

    def is_alive(self):
        return self.process.poll() is None

    def close(self):
        """Ends every process in the sandbox; waits until they are gone."""
        try:
            self.channel.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if not self.wait(STOP_SECONDS):
            self.process.kill()
        self.process.wait()
        self.channel.close()

    def wait(self, seconds):
        """Whether it ends within that time. Popen's own wait with a limit looks only every 50 ms."""
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(self.process.pid)
            try:
                poll = select.poll()
                poll.register(pidfd, select.POLLIN)
                return bool(poll.poll(seconds * 1000))
            finally:
                os.close(pidfd)
        return True

    def execute(self, argv, environment, cwd, uid, gid, descriptors, tty=False):
        """Starts a command inside; returns the descriptor on which its exit status comes (its end without one: killed)."""
        status, theirs = os.pipe()
        request = {"op": "exec", "argv": argv, "environment": environment, "cwd": cwd, "uid": uid, "gid": gid, "tty": tty}
        try:
            with self.lock:
                wire.send(self.channel, request, list(descriptors) + [theirs])
        except OSError:
            os.close(status)
            raise CliError(START_FAILED) from None
        finally:
            os.close(theirs)
        return status

    def socket(self, family, kind, listen=None):
        """A socket of the sandbox's network."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.settimeout(ANSWER_SECONDS)
            with self.lock:
                wire.send(self.channel, {"op": "socket", "family": int(family), "type": int(kind), "listen": listen}, [theirs.fileno()])
            theirs.close()
            data, descriptors, _, _ = socket.recv_fds(ours, 256, 1)
        if not descriptors:
            raise OSError(data.decode(errors="replace") or "the sandbox has ended")
        return socket.socket(fileno=descriptors[0])


def check_mount(path):
    """Why a workspace path cannot be mounted, or None."""
    try:
        mode = os.stat(path).st_mode
    except OSError as why:
        return f"{path}: {why.strerror.lower()}"
    return None if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else f"{path}: not a directory"
