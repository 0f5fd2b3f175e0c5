"""The first process of a sandbox. The daemon holds the other end of its socket: it starts commands, makes sockets in the sandbox's
network for it, and when the socket closes it ends, and with it everything in the sandbox. It imports only what is built into
Python, because it starts with every sandbox. Usage: init.py DESCRIPTOR"""
import _signal
import _socket
import fcntl
import marshal
import posix
import select
import sys

NOT_FOUND, NOT_EXECUTABLE = 127, 126
TIOCSCTTY = 0x540E
WORKLOAD_UID = 1000
RESERVED_SIGNALS = (32, 33)  # the C library keeps them for itself


def exactly(channel, size):
    data = b""
    while len(data) < size:
        part = channel.recv(min(size - len(data), 1 << 20))
        if not part:
            posix._exit(0)
        data += part
    return data


def receive(channel):
    head, ancillary, _, _ = channel.recvmsg(8, 256, _socket.MSG_CMSG_CLOEXEC)
    if not head:
        posix._exit(0)
    head += exactly(channel, 8 - len(head))
    rights = b"".join(data for _, _, data in ancillary)
    descriptors = [int.from_bytes(rights[i : i + 4], sys.byteorder) for i in range(0, len(rights), 4)]
    return marshal.loads(exactly(channel, int.from_bytes(head, "little"))), descriptors


def refuse(why, status):
    """As the container runtime does: on stdout, inside the command's own streams."""
    text = f"OCI runtime exec failed: exec failed: unable to start container process: {why}: unknown\n"
    posix.write(1, text.encode("utf-8", "surrogateescape"))
    posix._exit(status)


def lookup(program, environment):
    """The program's path, by the PATH of its own environment."""
    shown = program.decode("utf-8", "surrogateescape")
    candidates = [program] if b"/" in program else [folder + b"/" + program for folder in environment.get(b"PATH", b"/usr/bin:/bin").split(b":") if folder]
    denied = False
    for path in candidates:
        try:
            is_directory = posix.stat(path).st_mode & 0o170000 == 0o040000
        except OSError:
            continue
        if not is_directory and posix.access(path, posix.X_OK):
            return path
        denied = True
    if b"/" in program and not denied:
        refuse(f'exec: "{shown}": stat {shown}: no such file or directory', NOT_FOUND)
    if b"/" in program:
        refuse(f'exec: "{shown}": permission denied', NOT_EXECUTABLE)
    refuse(f'exec: "{shown}": executable file not found in $PATH', NOT_FOUND)


def become(request, descriptors):
    """In the child: everything up to the command's first instruction."""
    posix.setsid()
    for number in (0, 1, 2):
        posix.dup2(descriptors[number], number)
    if request["tty"]:
        fcntl.ioctl(0, TIOCSCTTY, 0)
    for number in range(1, _signal.NSIG):
        if number not in (_signal.SIGKILL, _signal.SIGSTOP) and number not in RESERVED_SIGNALS:
            _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
    posix.umask(0o022)
    try:
        posix.chdir(request["cwd"])
    except OSError as why:
        refuse(f'chdir to cwd ("{request["cwd"].decode("utf-8", "surrogateescape")}") set in config.json failed: {why.strerror.lower()}', NOT_FOUND)
    argv, environment = request["argv"], request["environment"]
    path = lookup(argv[0], environment)
    uid, gid = request["uid"], request["gid"]
    if (uid, gid) != (WORKLOAD_UID, WORKLOAD_UID):
        argv = [b"unshare", b"--user", b"--map-user=%d" % uid, b"--map-group=%d" % gid, b"--", path] + argv[1:]
        path = b"/usr/bin/unshare"
    try:
        posix.execve(path, argv, environment)
    except OSError as why:
        refuse(f'exec {path.decode("utf-8", "surrogateescape")}: {why.strerror.lower()}', NOT_EXECUTABLE)


def run(request, descriptors, children):
    """descriptors: stdin, stdout, stderr and where the status goes."""
    pid = posix.fork()
    if pid == 0:
        try:
            become(request, descriptors)
        finally:
            posix._exit(NOT_EXECUTABLE)
    children[pid] = descriptors[3]
    for number in descriptors[:3]:
        posix.close(number)


def make_socket(request, descriptors):
    """Answers on the descriptor with a socket of this network namespace, bound and listening where asked."""
    answer = _socket.socket(fileno=descriptors[0])
    try:
        made = _socket.socket(request["family"], request["type"])
        if request.get("listen"):
            made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            made.bind(request["listen"])
            made.listen(64)
        rights = made.fileno().to_bytes(4, sys.byteorder)
        answer.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
        made.close()
    except OSError as why:
        try:
            answer.send(str(why).encode())
        except OSError:
            pass
    answer.close()


def reap(children):
    while True:
        try:
            pid, status = posix.waitpid(-1, posix.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        where = children.pop(pid, None)
        if where is None:
            continue
        code = posix.WEXITSTATUS(status) if posix.WIFEXITED(status) else 128 + posix.WTERMSIG(status)
        try:
            posix.write(where, bytes([code]))
        except OSError:
            pass
        posix.close(where)


def main():
    channel = _socket.socket(fileno=int(sys.argv[1]))
    posix.set_inheritable(channel.fileno(), False)
    woken, wake = posix.pipe2(posix.O_CLOEXEC | posix.O_NONBLOCK)
    _signal.set_wakeup_fd(wake)
    _signal.signal(_signal.SIGCHLD, lambda number, frame: None)
    children = {}
    poll = select.poll()
    poll.register(channel.fileno(), select.POLLIN)
    poll.register(woken, select.POLLIN)
    channel.send(b"R")
    while True:
        for number, _ in poll.poll():
            if number == woken:
                posix.read(woken, 4096)
                reap(children)
                continue
            request, descriptors = receive(channel)
            if request["op"] == "exec":
                run(request, descriptors, children)
            else:
                make_socket(request, descriptors)


try:
    main()
finally:
    posix._exit(1)
