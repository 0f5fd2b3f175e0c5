"""The tool `bash`: one command in a login shell, with the server's own bounds and flaws."""
import errno
import os
import re
import selectors
import signal
import subprocess
import time

from .masking import mask
from .paths import PathError, ToolError, resolve_for_reading
from .text import from_utf8, to_utf8

GRACE_S = 1.5
READ_BYTES = 65536
# Failures to start that are told with the program's name; others without.
NAMED_FAILURES = (errno.ENOENT, errno.EACCES, errno.EAGAIN, errno.EMFILE, errno.ENFILE)
BLANKS = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


def usable_directory(path):
    path = (path or "").strip()
    return os.path.normpath(path) if os.path.isabs(path) and os.path.isdir(path) else None


def home_directory(environment):
    for path in (environment.get("USERPROFILE"), environment.get("HOME")):
        if usable_directory(path):
            return usable_directory(path)
    return os.path.abspath(os.path.expanduser("~"))


def any_temporary(environment):
    """The first that is named, whatever it is."""
    named = [environment[name] for name in ("TMPDIR", "TMP", "TEMP") if environment.get(name)] + ["/tmp"]
    return named[0].rstrip("/") or "/"


def make_environment(settings):
    given = {name: text for name, text in settings.environment.items() if not name.startswith("CODEXPRO_STANDIN_")}
    if settings.inherit_env:
        return {**given, "NO_COLOR": "1", "CI": given.get("CI", "1")}
    temporary = usable_directory(given.get("TMPDIR")) or usable_directory(given.get("TMP")) or any_temporary(given)
    return {
        "PATH": given.get("PATH", "/usr/local/bin:/usr/bin:/bin"), "HOME": home_directory(given),
        "USER": given.get("USER", given.get("USERNAME", "")), "SHELL": given.get("SHELL", "/bin/bash"), "TMPDIR": temporary,
        "TERM": "dumb", "NO_COLOR": "1", "CI": "1",
    }


def check_session(settings, given):
    """The server's bash session id, if the call may use it."""
    own, given = settings.bash_session_id, (given or "").strip(BLANKS)
    if own and not given and settings.require_bash_session:
        raise PathError(f'bash session id is required. Retry with session_id="{own}".')
    if own and given and given != own:
        raise PathError(f'bash session id mismatch. This CodexPro server accepts session_id="{own}".')
    return own


def check_mode(settings, command):
    if settings.bash_mode != "full":
        raise PathError(f"Command is not in the safe bash allowlist: {command} (the stand-in runs commands with --bash full only)")


def spawn(command, cwd, environment):
    try:
        return subprocess.Popen(["/bin/bash", "-lc", to_utf8(command)], cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
    except OSError as why:
        program = " /bin/bash" if why.errno in NAMED_FAILURES else ""
        raise ToolError(f"Error: spawn{program} {errno.errorcode.get(why.errno, 'EUNKNOWN')}") from why


class Run:
    """One command on its way: what of its output is kept, and how it is ended."""

    def __init__(self, child, timeout_ms, max_bytes):
        self.child, self.timeout_ms, self.max_bytes = child, timeout_ms, max_bytes
        self.kept = {"stdout": "", "stderr": ""}
        self.kept_bytes = {"stdout": 0, "stderr": 0}
        self.seen_bytes = 0
        self.timed_out = False
        self.deadline = time.monotonic() + timeout_ms / 1000
        self.kill_at = None
        self.is_terminating = False

    def append(self, stream, data):
        """Each read is decoded by itself: a character over its end is lost, and cut again where the room ends."""
        data = from_utf8(data).encode()
        self.seen_bytes += len(data)
        room = self.max_bytes + 1 - sum(self.kept_bytes.values())
        if room > 0:
            piece = from_utf8(data[:room])
            self.kept[stream] += piece
            self.kept_bytes[stream] += len(piece.encode())
        if self.seen_bytes > self.max_bytes:
            self.terminate()

    def terminate(self):
        if not self.is_terminating:
            self.is_terminating = True
            self.kill_at = time.monotonic() + GRACE_S
            self.send(signal.SIGTERM)

    def send(self, number):
        try:
            os.killpg(self.child.pid, number)
        except ProcessLookupError:
            pass
        except OSError:
            self.child.send_signal(number)

    def look_at_clocks(self):
        """Ends what is late; returns the seconds to the next such moment (None: never)."""
        now = time.monotonic()
        if not self.timed_out and now >= self.deadline:
            self.timed_out = True
            self.terminate()
        if self.kill_at is not None and now >= self.kill_at:
            self.kill_at = None
            self.send(signal.SIGKILL)
        moments = ([] if self.timed_out else [self.deadline]) + ([self.kill_at] if self.kill_at is not None else [])
        return max(0, min(moments) - now) if moments else None

    def watch(self):
        """Until both pipes are closed and the shell is gone."""
        # The pid stays ours until the pipes are closed, so that the group's number cannot become another's.
        with selectors.DefaultSelector() as selector:
            for name in self.kept:
                selector.register(getattr(self.child, name), selectors.EVENT_READ, name)
            while selector.get_map():
                for key, _ in selector.select(self.look_at_clocks()):
                    data = os.read(key.fd, READ_BYTES)
                    if data:
                        self.append(key.data, data)
                    else:
                        selector.unregister(key.fileobj)
                        key.fileobj.close()
        while True:
            try:
                self.child.wait(self.look_at_clocks())
                return
            except subprocess.TimeoutExpired:
                pass


def how_it_ended(status):
    """(exit code, name of the signal). A signal without a name of its own looks like success."""
    if status >= 0:
        return status, None
    is_named = -status < signal.SIGRTMIN
    return (None, signal.Signals(-status).name) if is_named else (0, None)


def cut(text, max_bytes):
    data = to_utf8(text)
    if len(data) <= max_bytes:
        return text, False
    return f"{from_utf8(data[:max_bytes])}\n...[output truncated to {max_bytes} bytes]", True


def count_lines(text):
    return sum(1 for line in re.split(r"\r?\n", text) if line)


def plural(count):
    return f"{count} line{'' if count == 1 else 's'}"


def describe(result, transcript):
    """The text item."""
    signal_name = f" ({result['signal']})" if result["signal"] else ""
    code = "null" if result["exitCode"] is None else result["exitCode"]
    head = [f"CWD: {result['cwd']}", f"Exit: {code}{signal_name}", f"Duration: {result['durationMs']} ms"]
    if transcript == "full":
        fences = [f"## {name}\n\n```text\n{result[name]}\n```" for name in ("stdout", "stderr")]
        return "\n\n".join([f"# Bash\n\n```bash\n$ {result['command']}\n```", "\n".join(head), *fences])
    counts = f"Output: stdout {plural(count_lines(result['stdout']))}, stderr {plural(count_lines(result['stderr']))}."
    last = "Raw stdout and stderr are in the structured content. Start with `--bash-transcript full` to have them here."
    return "\n".join(["# Bash", "", f"`{result['command']}`", "", *head, counts, "", last])


def run(settings, arguments):
    """(text, fields) of one call."""
    command = arguments["command"]
    if not command.strip(BLANKS):
        raise PathError("command is required.")
    session = check_session(settings, arguments.get("session_id"))
    check_mode(settings, command)
    cwd, relative = resolve_for_reading(settings.root, arguments.get("cwd", "."), settings.blocked_globs)
    if "\0" in command:
        raise ToolError("TypeError: The argument 'args[1]' must be a string without null bytes.")
    start = time.monotonic()
    timeout_ms = max(1000, min(arguments.get("timeout_ms", 30000), settings.max_bash_timeout_ms))
    child = spawn(command, cwd, make_environment(settings))
    watched = Run(child, timeout_ms, settings.max_output_bytes)
    watched.watch()
    if watched.timed_out:
        watched.kept["stderr"] += f"\n[codexpro] Command timed out after {timeout_ms} ms."
    out, out_cut = cut(mask(watched.kept["stdout"]), settings.max_output_bytes)
    err, err_cut = cut(mask(watched.kept["stderr"]), settings.max_output_bytes)
    code, signal_name = how_it_ended(child.returncode)
    result = {
        "command": command, "cwd": relative, "exitCode": code, "signal": signal_name, "durationMs": int((time.monotonic() - start) * 1000),
        "stdout": out, "stderr": err, "truncated": out_cut or err_cut,
    }
    if session:
        result["bashSessionId"] = session
    result["bash_session_id"] = session
    return describe(result, settings.bash_transcript), result
