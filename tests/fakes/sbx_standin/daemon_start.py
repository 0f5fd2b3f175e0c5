"""What the client does when the daemon is down, and `sbx daemon ...`: starts it (once, however many calls come at the same time),
tells so in the banner's three lines on stdout, and knows the commands that do not start it."""
import fcntl
import json
import os
import signal
import time

START_SECONDS = STOP_SECONDS = 300  # against hanging only
HERE = os.path.dirname(os.path.abspath(__file__))


def say(number, text):
    try:
        os.write(number, text.encode())
    except OSError:
        pass


def before_call(state, connect, argv):
    """A connection to make the call on, or an exit status when the client has answered itself."""
    words = [word for word in argv if not word.startswith("-")]
    os.makedirs(state, mode=0o700, exist_ok=True)
    if words[:1] == ["daemon"] and not {"-h", "--help"} & set(argv):
        answer = DAEMON_COMMANDS.get(words[1] if len(words) > 1 else "", unknown_command)
        return answer(state, connect, argv[1:])
    if {"-h", "--help"} & set(argv) or words[:1] in ([], ["help"]):
        from sbx_standin import commands
        return commands.print_help(argv)
    return start(state, connect)


def connected(state, connect):
    try:
        return connect(state)
    except OSError:
        return None


def start(state, connect, banner=True):
    with open(os.path.join(state, b"start.lock"), "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sock = connected(state, connect)
        if sock:
            return sock
        broken = start_fault(state)
        if broken:
            time.sleep(broken.get("ms", 0) / 1000)
            say(2, broken.get("text", "ERROR: failed to start sandboxd daemon: timed out waiting for the socket\n"))
            return broken.get("exit", 1)
        pid = spawn(state)
        sock = connected(state, connect) if pid else None
    path = os.fsdecode(state)
    if not sock:
        say(2, f"ERROR: failed to start sandboxd daemon: see {path}/daemon.log\n")
        return 1
    if banner:
        say(1, f"Starting sandboxd daemon...\nDaemon started (PID: {pid}, socket: {path}/sandboxd.sock)\nLogs: {path}/daemon.log\n")
    return sock


def start_fault(state):
    """A fault on "daemon start" acts here, as there is no daemon that could."""
    from sbx_standin import faults
    try:
        rules = faults.Faults(os.fsdecode(state))
        hit = rules.take(["daemon", "start"], ["daemon", "start"], {"fail"})
    except faults.BadFaults as why:
        return {"text": f"ERROR: stand-in: {why}\n", "exit": 97}
    return hit[0] if hit else None


def spawn(state):
    """Starts the daemon in the background and waits until it listens; its pid, or 0."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            run_daemon(state, tell, foreground=False)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    os.close(tell)
    import select
    end, said = time.monotonic() + START_SECONDS, b""
    while time.monotonic() < end and not said.endswith(b"\n"):
        if select.select([ready], [], [], end - time.monotonic())[0]:
            part = os.read(ready, 64)
            if not part:
                break
            said += part
    os.close(ready)
    return int(said) if said.endswith(b"\n") else 0


def run_daemon(state, tell, foreground):
    log = os.open(os.path.join(state, b"daemon.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    if not foreground:
        os.dup2(null, 1)
        os.dup2(log, 2)
    if tell is None:
        os.closerange(3, 65536)
    else:
        os.dup2(tell, 3)
        os.closerange(4, 65536)
    os.execve("/usr/bin/python3", ["python3", "-I", "-S", os.path.join(HERE, "daemon.py"), os.fsdecode(state), "3" if tell is not None else "-"],
              os.environ)


# ---- sbx daemon ------------------------------------------------------------------------------------------------------
def daemon_start(state, connect, argv):
    sock = connected(state, connect)
    if sock:
        say(1, "Daemon is already running\n")
        return 0
    if "--policy" in argv:
        os.environ["SBX_STANDIN_START_POLICY"] = argv[argv.index("--policy") + 1] if argv[-1] != "--policy" else ""
    if not {"-d", "--detach"} & set(argv):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        run_daemon(state, None, foreground=True)
    sock = start(state, connect)
    return sock if isinstance(sock, int) else 0


def daemon_status(state, connect, argv):
    sock = connected(state, connect)
    if sock:
        return sock
    say(1, json.dumps({"status": "stopped"}) + "\n" if "--json" in argv else "Status: stopped\n")
    return 1


def daemon_stop(state, connect, argv):
    sock = connected(state, connect)
    if not sock:
        say(1, "Daemon is not running\n")
        return 0
    return sock


def daemon_restart(state, connect, argv):
    sock = connected(state, connect)
    if sock:
        stop_and_wait(state, sock)
    sock = start(state, connect)
    return sock if isinstance(sock, int) else 0


def stop_and_wait(state, sock):
    from sbx_standin import wire
    null = os.open("/dev/null", os.O_RDWR)
    wire.send(sock, {"argv": [b"daemon", b"stop"], "environment": dict(os.environb), "cwd": b"/", "closed": [], "pid": os.getpid()}, [null] * 3)
    sock.settimeout(STOP_SECONDS)
    try:
        sock.recv(1)
    except OSError:
        pass


def daemon_log_level(state, connect, argv):
    sock = connected(state, connect)
    return sock if sock else start(state, connect)


def unknown_command(state, connect, argv):
    say(2, f"ERROR: unknown command for \"sbx daemon\": {' '.join(argv)}\n")
    return 1


DAEMON_COMMANDS = {"start": daemon_start, "status": daemon_status, "stop": daemon_stop, "restart": daemon_restart, "log-level": daemon_log_level}
