"""What the rules of the fault file do to a call, before the command, after it, and to what it printed."""
import json
import os
import socket

from .commands import json_of
from .errors import ClientGone, CliError

EXPIRED = "request failed: 401 Unauthorized: docker session has expired: please sign in to Docker to proceed"
BANNER = "Starting sandboxd daemon...\nDaemon started (PID: {pid}, socket: {state}/sandboxd.sock)\nLogs: {state}/daemon.log\n"
SIGN_IN = b"Your one-time device confirmation code is: SBXF-AKE0\nWaiting for authentication...\n"


class Finished(Exception):
    """The fault answers in the command's place."""

    def __init__(self, status, out="", err=""):
        super().__init__()
        self.status, self.out, self.err = status, out, err


def hang(call, rule):
    call.wait()
    raise ClientGone


def delay(call, rule):
    call.daemon.pause(rule.get("ms", 0) / 1000)


def prompt(call, rule):
    if not call.confirm(rule.get("text", "Restart now? (y/N): ")):
        raise Finished(0)


def session_expired(call, rule):
    if rule.get("wait"):
        call.write(1, b"Your Docker session has expired. Starting the sign-in flow...\n" + SIGN_IN)
        hang(call, rule)
    raise CliError(EXPIRED)


def fail(call, rule):
    text = rule.get("text", "ERROR: request failed: 500 Internal Server Error\n")
    raise Finished(rule.get("exit", 1), *((text, "") if rule.get("stream") == "stdout" else ("", text)))


def crash_daemon(call, rule):
    os._exit(70)


def stop_sandbox(call, rule):
    name = rule.get("sandbox") or next((word for word in call.argv if call.store.sandbox(word)), None)
    if name:
        box = call.sandboxes.get(name)
        with box.lock:
            call.sandboxes.halt(box)


def steal_port(call, rule):
    """Another program takes the port just before the command."""
    thief = socket.socket()
    thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    thief.bind((rule.get("address", "127.0.0.1"), rule["port"]))
    thief.listen(1)
    call.daemon.thieves.append(thief)


def update_pending(call, rule):
    text = "Client version: {0}\nDaemon version: {1}\nDocker Sandboxes has been updated and needs to restart. All running sandboxes will be stopped.\n"
    call.write(1, text.format("v9.9.9", "v0.0.1").encode())
    prompt(call, {})


def conflict(call, rule):
    raise CliError("failed to create sandbox: request failed: 409 Conflict: sandbox already exists")


def unavailable(call, rule):
    raise CliError("request failed: 500 Internal Server Error: backend unavailable")


BEFORE = {"hang": hang, "delay": delay, "prompt": prompt, "session-expired": session_expired, "fail": fail, "crash-daemon": crash_daemon,
          "stop-sandbox": stop_sandbox, "steal-port": steal_port, "update-pending": update_pending, "conflict": conflict, "unavailable": unavailable}
EITHER = {"hang", "delay", "crash-daemon", "stop-sandbox"}


def act(call, when):
    for rule in call.faults:
        if rule["do"] in BEFORE and (rule.get("when", "before") if rule["do"] in EITHER else "before") == when:
            BEFORE[rule["do"]](call, rule)


# ---- what it prints --------------------------------------------------------------------------------------------------
def each_object(value):
    """The JSON objects a driver reads rows from: those of the list, or of the one list in the object."""
    rows = value if isinstance(value, list) else next((part for part in value.values() if isinstance(part, list)), [value])
    return [row for row in rows if isinstance(row, dict)]


def change_json(out, change):
    found = json_of(out)
    if not found:
        return out
    for row in each_object(found[1]):
        change(row)
    return found[0] + json.dumps(found[1]) + "\n"


def bend(call, status, out, err):
    """(status, out, err) after the faults of what is printed."""
    for rule in call.faults:
        action = rule["do"]
        if action == "banner":
            out = rule.get("text", BANNER.format(pid=os.getpid(), state=call.daemon.state)) + out
        elif action == "notice":
            text = rule.get("text", "A new version of sbx is available: v0.99.0\n")
            out, err = (out, text + err) if rule.get("stream") == "stderr" else (text + out, err)
        elif action == "garbage":
            out = rule.get("text", "\x1b[31m<html>{not json at all</html>\n")
        elif action == "truncate":
            out = out[: rule.get("bytes", len(out) // 2)]
        elif action == "json-add":
            out = change_json(out, lambda row: row.update(rule.get("keys") or {"future_key": {"nested": [1, None]}}))
        elif action == "json-drop":
            out = change_json(out, lambda row: [row.pop(key, None) for key in rule.get("keys", [])])
        elif action == "errors-on-stdout":
            out, err = out + err, ""
        elif action == "exit":
            status = rule.get("exit", 1)
    return status, out, err
