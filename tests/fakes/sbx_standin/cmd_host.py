"""version, login, logout, diagnose, secret, settings, mcp, daemon, prune, reset."""
import hashlib
import json
import os

from . import table, versions
from .errors import ClientGone, CliError

JSON = ("json", "", "switch", "Output in JSON format", (0, 0))
FORCE = ("force", "f", "switch", "Do not ask", (0, 0))
VERSION_FLAGS = [("json", "", "switch", "Output in JSON format", versions.FEATURES["json_everywhere"])]
LOGIN_FLAGS = [("username", "u", "one", "Docker ID", (0, 0)), ("password-stdin", "", "switch", "Read the access token from stdin", (0, 0))]
DIAGNOSE_FLAGS = [("output", "o", "one", "text, json or github-issue", (0, 0)), ("upload", "", "switch", "Upload the report", (0, 0))]
SECRET_FLAGS = [("sandbox", "", "one", "For one sandbox only", (0, 0)), ("ref", "", "one", "Reference", (0, 0)), ("command", "", "one", "Command", (0, 0)),
                ("token", "t", "one", "Value", (0, 0)), ("global", "g", "switch", "For all sandboxes", (0, 0)), FORCE]
SETTINGS_FLAGS = [JSON, ("no-trunc", "", "switch", "Do not truncate", (0, 0))]
PRUNE_FLAGS = [JSON, FORCE, ("dry-run", "", "switch", "Only tell", (0, 0)), ("filter", "", "many", "until=T", versions.FEATURES["prune_filter"])]


def commit_of(version):
    return hashlib.sha1(versions.show(version).encode()).hexdigest()


def version(call, options, words):
    text, server = versions.show(call.version), versions.show(call.daemon.version)
    if options.get("json"):
        server_side = {"version": server, "revision": commit_of(call.daemon.version)}
        call.print(json.dumps({"version": text, "revision": commit_of(call.version), "server": server_side}))
    elif call.version < (0, 33):
        call.print(f"Client Version:  {text} {commit_of(call.version)}\nServer Version:  {server} {commit_of(call.daemon.version)}")
    else:
        call.print(f"sbx version: {text} {commit_of(call.version)}")


def login(call, options, words):
    if options["password-stdin"]:
        if not options["username"]:
            raise CliError("--password-stdin requires --username")
        if not os.read(call.descriptors[0], 4096).strip():
            raise CliError("password is empty")
    elif not call.store.data["logged_in"]:
        call.write(1, b"Your one-time device confirmation code is: SBXF-AKE0\nWaiting for authentication...\n")
        call.wait()
        raise ClientGone
    with call.store.lock:
        call.store.data["logged_in"], call.store.data["user"] = True, options["username"] or call.store.data["user"]
        call.store.save()
    call.print("Login Succeeded")


def logout(call, options, words):
    call.sandboxes.stop_all()
    with call.store.lock:
        call.store.data["logged_in"] = False
        call.store.save()
    call.print("Logged out")


def findings(call):
    """(check, status, message)."""
    has_kvm, signed_in, same = os.access("/dev/kvm", os.R_OK | os.W_OK), call.store.data["logged_in"], call.version == call.daemon.version
    client, daemon = versions.show(call.version), versions.show(call.daemon.version)
    return [
        ("CLI binary", True, "sbx is installed"), ("Binary version", True, client), ("Daemon", True, "sandboxd is running"),
        ("Daemon diagnostics", True, "no problems found"),
        ("Virtualization", has_kvm, "/dev/kvm is usable" if has_kvm else "/dev/kvm is not usable; the stand-in does not need it"),
        ("Storage directories", True, call.store.directory), ("Directory permissions", True, "0700"), ("Disk space", True, "enough"),
        ("Version match", same, f"client {client}, daemon {daemon}"), ("Socket", True, "sandboxd.sock answers"),
        ("SSH client config", True, "not configured"), ("Authentication", signed_in, f"signed in as {call.store.data['user']}" if signed_in else "not signed in"),
    ]


def diagnose(call, options, words):
    rows = [{"name": name, "status": "pass" if good else "warn", "message": message, "detail": "", "hint": "" if good else "see the message"}
            for name, good, message in findings(call)]
    if options["output"] == "json":
        call.print(json.dumps({"version": "1.0", "checks": rows}, indent=2))
    else:
        call.print(table.render(["CHECK", "STATUS", "MESSAGE"], [[row["name"], row["status"], row["message"]] for row in rows]))


# ---- secrets: names only ----------------------------------------------------------------------------------------------
def secret_set(call, options, words):
    if not words:
        raise CliError("a service is required")
    if not (options["token"] or options["ref"] or options["command"]) and not os.read(call.descriptors[0], 65536).strip():
        raise CliError("secret value is empty")
    entry = {"name": words[0], "sandbox": options["sandbox"] or "", "scope": f"sandbox:{options['sandbox']}" if options["sandbox"] else "global"}
    if options["sandbox"]:
        call.sandboxes.get(options["sandbox"])
    with call.store.lock:
        if entry in call.store.data["secrets"] and not options["force"]:
            raise CliError(f"secret {words[0]} already exists; use --force to replace it")
        call.store.data["secrets"] = [known for known in call.store.data["secrets"] if known != entry] + [entry]
        call.store.save()
    call.print(f"Secret {words[0]} set")


def secret_ls(call, options, words):
    with call.store.lock:
        rows = [{"name": entry["name"], "scope": entry["scope"]} for entry in call.store.data["secrets"]]
    if options["json"]:
        call.print(json.dumps({"secrets": rows}, indent=2))
    else:
        call.print(table.render(["NAME", "SCOPE"], [[row["name"], row["scope"]] for row in rows]) if rows else "No secrets found")


def secret_rm(call, options, words):
    with call.store.lock:
        left = [entry for entry in call.store.data["secrets"] if not (entry["name"] in words and entry["sandbox"] == (options["sandbox"] or ""))]
        if len(left) == len(call.store.data["secrets"]):
            raise CliError(f"secret {' '.join(words)} not found")
        call.store.data["secrets"] = left
        call.store.save()


# ---- settings ----------------------------------------------------------------------------------------------------------
def show_value(value):
    return json.dumps(value) if not isinstance(value, str) else value


def settings_list(call, options, words):
    with call.store.lock:
        values = dict(call.store.data["settings"])
    if options["json"]:
        call.print(json.dumps({"settings": [{"key": key, "value": value, "source": "default"} for key, value in sorted(values.items())]}, indent=2))
    else:
        call.print(table.render(["KEY", "VALUE", "SOURCE"], [[key, show_value(value), "default"] for key, value in sorted(values.items())]))


def settings_get(call, options, words):
    with call.store.lock:
        values = call.store.data["settings"]
        if len(words) != 1 or words[0] not in values:
            raise CliError(f"unknown setting \"{' '.join(words)}\"")
        value = values[words[0]]
    call.print(json.dumps({"key": words[0], "value": value, "source": "default"}) if options["json"] else show_value(value))


def settings_set(call, options, words):
    if len(words) != 2:
        raise CliError(f"accepts 2 arg(s), received {len(words)}")
    with call.store.lock:
        call.store.data["settings"][words[0]] = {"true": True, "false": False}.get(words[1], words[1])
        call.store.save()


def settings_unset(call, options, words):
    from .store import fresh
    with call.store.lock:
        default = fresh()["settings"]
        for word in words:
            call.store.data["settings"].pop(word, None)
            call.store.data["settings"].update({word: default[word]} if word in default else {})
        call.store.save()


def mcp_ls(call, options, words):
    with call.store.lock:
        servers = list(call.store.data["mcp"])
    if options["json"]:
        call.print(json.dumps({"servers": servers}))
    else:
        call.print(table.render(["NAME"], [[name] for name in servers]) if servers else "No MCP servers found")


# ---- the daemon ----------------------------------------------------------------------------------------------------------
def daemon_status(call, options, words):
    if options["json"]:
        call.print(json.dumps({"status": "running", "pid": os.getpid(), "version": versions.show(call.daemon.version),
                               "socket": call.daemon.state + "/sandboxd.sock"}))
    else:
        call.print(f"Status: running\nPID: {os.getpid()}\nSocket: {call.daemon.state}/sandboxd.sock")


def daemon_stop(call, options, words):
    call.daemon.stop_serving()
    call.sandboxes.stop_all()
    call.print("Daemon stopped")
    call.daemon.end_after = call


def daemon_log_level(call, options, words):
    call.print(f"Log level: {' '.join(words[1:]) or 'info'}")


def prune(call, options, words):
    """Every stopped sandbox of this user, whoever made it."""
    with call.sandboxes.lock:
        boxes = [box for box in call.sandboxes.live.values() if not box.is_running]
    names = sorted(box.name for box in boxes)
    if not options["dry-run"] and names:
        if not call.confirm_or_force(f"Remove {len(names)} stopped sandboxes? (y/N): ", options["force"]):
            return
        for box in boxes:
            call.sandboxes.remove(box)
    if options["json"]:
        call.print(json.dumps({"removed" if not options["dry-run"] else "would_remove": names}))
    else:
        call.print("\n".join(names) or "Nothing to prune")


def reset(call, options, words):
    if not call.confirm_or_force("Remove all sandboxes and sign out? (y/N): ", options["force"]):
        return
    with call.sandboxes.lock:
        boxes = list(call.sandboxes.live.values())
    for box in boxes:
        call.sandboxes.remove(box)
    with call.store.lock:
        call.store.data["logged_in"], call.store.data["half_created"] = False, []
        call.store.data["policy"] = {"initialized": None, "rules": []}
        call.store.save()
    call.print("Reset complete")
