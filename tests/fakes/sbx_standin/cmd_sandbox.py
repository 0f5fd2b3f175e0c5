"""create, run, exec, ls, inspect, stop, rm, ports."""
import json
import os
import re
import time

from . import clone, egress, execio, images, policy, ports, table, versions
from .errors import ClientGone, CliError, not_found
from .store import new_id, now

AGENTS = ("shell", "claude", "codex", "copilot", "cursor", "docker-agent", "droid", "gemini", "kiro", "opencode")
CREATE_FLAGS = [
    ("name", "", "one", "Name of the sandbox (default: <agent>-<workdir>)", (0, 0)),
    ("template", "t", "one", "Container image to use (default: the agent's image)", (0, 0)),
    ("publish", "p", "many", "Publish a port: [[HOST_IP:]HOST_PORT:]SANDBOX_PORT[/PROTOCOL]", (0, 37)),
    ("clone", "", "switch", "Work on a clone of the repository", (0, 0)),
    ("cpus", "", "one", "Number of CPUs (0 = auto)", (0, 0)),
    ("memory", "m", "one", "Memory limit, e.g. 512m, 8g", (0, 0)),
    ("env", "e", "many", "Set an environment variable: KEY=VALUE or KEY", versions.FEATURES["env_flags"]),
    ("env-file", "", "many", "Read environment variables from a file", versions.FEATURES["env_flags"]),
    ("deny-network", "", "many", "Deny a network resource for this sandbox", (0, 38)),
    ("allow-network", "", "cloud", "Allow a network resource (cloud only)", (0, 38)),
    ("pull", "", "one", "Pull policy: always, missing, never", versions.FEATURES["create_pull_skills"]),
    ("skills", "", "one", "Skills store: off, readonly, readwrite", versions.FEATURES["create_pull_skills"]),
    ("kit", "", "many", "Kit (experimental)", (0, 38)),
    ("kit-arg", "", "many", "Kit argument (experimental)", (0, 42)),
    ("kit-args-file", "", "one", "Kit arguments (experimental)", (0, 42)),
    ("static-mcp", "", "one", "MCP servers", versions.FEATURES["static_mcp"]),
    ("quiet", "q", "switch", "Suppress verbose output", (0, 0)),
    ("ttl", "", "cloud", "Time to live (cloud only)", (0, 42)),
    ("on-timeout", "", "cloud", "What to do on timeout (cloud only)", (0, 42)),
    ("volume", "", "cloud", "Volume (cloud only)", (0, 42)),
    ("image-ref", "", "cloud", "Image (cloud only)", (0, 42)),
    ("platform", "", "cloud", "Platform (cloud only)", (0, 42)),
]
RUN_FLAGS = CREATE_FLAGS + [("detached", "d", "switch", "Start without attaching and print the id", versions.FEATURES["run_detached"])]
EXEC_FLAGS = [
    ("interactive", "i", "switch", "Keep STDIN open even if not attached", (0, 0)),
    ("tty", "t", "switch", "Allocate a pseudo-TTY", (0, 0)),
    ("env", "e", "many", "Set environment variables", (0, 0)),
    ("env-file", "", "many", "Read in a file of environment variables", (0, 0)),
    ("user", "u", "one", "Username or UID (format: <name|uid>[:<group|gid>])", (0, 0)),
    ("workdir", "w", "one", "Working directory inside the sandbox", (0, 0)),
    ("privileged", "", "switch", "Give extended privileges to the command", (0, 0)),
    ("detach", "d", "switch", "Detached mode: run command in the background", (0, 0)),
    ("detach-keys", "", "one", "Override the key sequence for detaching", (0, 0)),
]
LS_FLAGS = [("json", "", "switch", "Output in JSON format", (0, 0)), ("quiet", "q", "switch", "Only display sandbox names", (0, 0))]
JSON_FLAG = [("json", "", "switch", "Output in JSON format", (0, 0))]
RM_FLAGS = [("force", "f", "switch", "Do not ask, and remove one in use", (0, 0)), ("all", "", "switch", "Remove all sandboxes", (0, 0))]
PORTS_FLAGS = JSON_FLAG + [("publish", "", "many", "Publish a port", (0, 0)), ("unpublish", "", "many", "Unpublish a port", (0, 0))]
USERS = {"root": (0, 0, "/root"), "0": (0, 0, "/root"), "agent": (1000, 1000, "/home/agent"), "1000": (1000, 1000, "/home/agent"), "nobody": (65534, 65534, "/")}
GUEST_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MEBIBYTE = 1 << 20
RUN_FAILED = "failed to create sandbox: failed to run sandbox container"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


# ---- create ----------------------------------------------------------------------------------------------------------
def check_name(name, version):
    newest = versions.has(version, "names_checked")
    pattern = r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]" if newest else r"[A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9]"
    if not re.fullmatch(pattern, name) or (newest and len(name) > 63):
        raise CliError(f"invalid sandbox name \"{name}\": must be 2 to 63 characters, start and end with a letter or digit, and contain only letters, digits, '-' and '.'")
    if newest and name == "default":
        raise CliError("invalid sandbox name \"default\": the name is reserved")


def default_name(agent, paths):
    if not paths:
        return f"{agent}-{new_id()[:8]}"
    base = re.sub(r"[^A-Za-z0-9.-]+", "-", os.path.basename(paths[0][0])).strip("-.")
    return f"{agent}-{base}"[:63].rstrip("-.")


def parse_size(text, what):
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([bkmgt]?)(?:i?b)?", text.lower())
    if not found:
        raise CliError(f"invalid {what} \"{text}\": use a number with a unit, e.g. 512m or 8g")
    return int(float(found[1]) * UNITS[found[2]])


def host_memory():
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(text, version):
    if text is None:
        return min(max(host_memory() // 2, 512 * MEBIBYTE), 32 << 30)
    size = parse_size(text, "memory size")
    if versions.has(version, "minimum_memory") and size < 512 * MEBIBYTE:
        raise CliError(f"invalid memory size \"{text}\": the minimum is 512 MiB")
    if size > max(host_memory() * 3 // 4, 512 * MEBIBYTE):
        raise CliError(f"invalid memory size \"{text}\": more than 75% of the host's memory")
    return size


def check_cpus(text):
    if text is None:
        return 0
    if not re.fullmatch(r"[+-]?\d+", text):
        raise CliError(f"invalid argument \"{text}\" for \"--cpus\" flag: strconv.ParseInt: parsing \"{text}\": invalid syntax")
    if int(text) < 0 or int(text) > (os.cpu_count() or 1):
        raise CliError(f"invalid number of CPUs {text}: the host has {os.cpu_count()}")
    return int(text)


def read_environment(call, options):
    """--env-file in order, then -e; a bare name takes the caller's value and is left out where it has none."""
    found = {}
    lines = []
    for file in options.get("env-file") or []:
        try:
            with open(call.path(file), errors="surrogateescape") as text:
                lines += [line.strip("\r\n") for line in text if line.strip() and not line.lstrip().startswith("#")]
        except OSError as why:
            raise CliError(f"open {file}: {(why.strerror or str(why)).lower()}") from None
    for line in lines + (options.get("env") or []):
        name, equals, value = line.partition("=")
        if not name:
            raise CliError(f"invalid environment variable: {line}")
        if equals:
            found[name] = value
        elif name in call.environment:
            found[name] = call.environment[name]
    return found


def workspace_paths(call, words):
    """[(absolute path, read-only)]; a path keeps its own spelling, as the guest sees it under the same one."""
    found = []
    for word in words:
        read_only = word.endswith(":ro")
        path = call.path(word[:-3] if read_only else word)
        if not os.path.exists(path):
            raise CliError(f"workspace path does not exist: {path}")
        if path == "/" or (not os.path.isdir(path) and not read_only):
            raise CliError(f"workspace path is not a directory: {path}")
        found.append((path, read_only))
    return found


def new_record(call, options, words):
    if not words:
        raise CliError("requires at least 1 arg(s), only received 0")
    agent = words[0]
    if agent not in AGENTS:
        raise CliError(f"unknown agent or kit \"{agent}\": must be one of {', '.join(AGENTS)}")
    if len(words) < 2 and not versions.has(call.version, "mountless"):
        raise CliError("requires at least 2 arg(s), only received 1")
    paths = workspace_paths(call, words[1:])
    name = options["name"] if options["name"] is not None else default_name(agent, paths)
    refused = call.fault("refuse-name")
    if refused:
        raise CliError(refused.get("text", f"invalid sandbox name \"{name}\""))
    check_name(name, call.version)
    record = {
        "name": name, "id": new_id(), "agent": agent, "template": options["template"] or "", "workspaces": [path for path, _ in paths],
        "mounts": paths, "env": read_environment(call, options), "cpus": check_cpus(options["cpus"]),
        "memory": check_memory(options["memory"], call.version), "created_at": now(), "last_used_at": now(), "ports": [], "clone": None, "skills": options.get("skills"),
    }
    for spec in options.get("publish") or []:
        record["ports"] += open_faults(call, ports.rows_of(spec, versions.has(call.version, "tcp4_default")))
    if options["clone"]:
        plan_clone(call, record, paths)
    return record


def plan_clone(call, record, paths):
    if not paths:
        raise CliError("--clone requires an explicit workspace path")
    source = clone.check(paths[0][0])
    where = call.settings["clone_path"]
    record["clone"] = {"source": source, "path": source if where == "same" else where}
    record["mounts"] = paths[1:]
    record["ports"] += ports.rows_of(str(ports.GIT_PORT), True)


def deny_rules(options, record):
    return [policy.make_rule("deny", [host.strip() for host in value.split(",")], record["name"], record["id"]) for value in options.get("deny-network") or []]


def check_policy(call):
    """What the real one does without a policy is not known; this is the stand-in's choice."""
    if not call.store.data["policy"]["initialized"]:
        raise CliError("no network policy has been set up; run 'sbx policy init allow-all|balanced|deny-all' first")


def create(call, options, words):
    record = make(call, options, words)
    if not options["quiet"]:
        call.warn(f"Created sandbox {record['name']} from {record['template'] or 'the image of agent ' + record['agent']}")
        call.print(f"Sandbox '{record['name']}' created. Run it with: sbx run --name {record['name']}")
    else:
        call.print(record["name"])


def make(call, options, words):
    check_policy(call)
    record = new_record(call, options, words)
    rules = deny_rules(options, record)
    image = images.find(call, record["template"], options.get("pull") or "always")
    call.sandboxes.reserve(record["name"], record)
    try:
        build(call, record, rules, image)
    finally:
        call.sandboxes.unreserve(record["name"])
    return record


def build(call, record, rules, image):
    """The slow part: at least create_delay_ms. What becomes of it when the client is killed meanwhile is a setting."""
    due = time.monotonic() + call.settings["create_delay_ms"] / 1000
    if call.fault("create-ghost") or call.fault("create-half") or len(record["name"]) > 63:
        call.daemon.pause(due - time.monotonic())
        if call.fault("create-ghost"):
            return
        if call.fault("create-half"):
            take_name(call, record["name"])
        raise CliError(RUN_FAILED)
    box = call.sandboxes.prepare(record, image, call)
    try:
        call.daemon.pause(due - time.monotonic())
        check_client(call, record["name"])
        if record["clone"]:
            clone.wait_until_served(box.runtime)
            clone.point_remote(record, call.sandboxes.live_row(box, ports.GIT_PORT))
        call.sandboxes.commit(box, record, rules)
    except Exception:
        call.sandboxes.abandon(box, record)
        raise
    there = call.fault("create-there")
    if there:
        raise CliError(there.get("text", "failed to create sandbox: request failed: 500 Internal Server Error: context deadline exceeded"))


def check_client(call, name):
    """Whether a create goes on although its client was killed."""
    fate = call.settings["killed_create"] if call.is_gone() else "finish"
    if fate == "half":
        take_name(call, name)
    if fate != "finish":
        raise ClientGone


def take_name(call, name):
    """Half-created: no list shows it, and nobody else gets the name."""
    with call.store.lock:
        call.store.data["half_created"].append(name)
        call.store.save()


def run(call, options, words):
    """Creates by need, then attaches to a shell; -d prints the id instead."""
    arguments = words[options.dashdash:] if options.dashdash is not None else []
    words = words[: options.dashdash] if options.dashdash is not None else words
    name = options["name"]
    known = name is not None and call.store.sandbox(name)
    if known:
        late = {"template", "memory", "cpus", "skills", "clone", "env", "env-file", "deny-network", "pull"} & options.given
        if late and versions.has(call.version, "create_only_flags"):
            raise CliError(f"--{sorted(late)[0]} can only be used when a sandbox is created, and '{name}' exists")
    else:
        if not words:
            raise not_found(name) if name else CliError("requires at least 1 arg(s), only received 0")
        name = make(call, options, words if len(words) > 1 else words + [call.cwd])["name"]
    box = call.sandboxes.get(name)
    if options.get("detached"):
        with call.sandboxes.session(box, call):
            call.print(call.store.sandbox(name)["id"])
        return None
    terminal = os.isatty(call.descriptors[0])
    return execute(call, box, ["/bin/bash"] + (["-c", " ".join(arguments)] if arguments else []), {}, None, "agent", terminal, False)


# ---- exec ------------------------------------------------------------------------------------------------------------
def exec_command(call, options, words):
    if options["detach"] and versions.has(call.version, "no_exec_detach"):
        raise CliError("--detach is not supported for exec; omit -d to run the command in the foreground")
    if words[1:2] == ["--"]:
        words = words[:1] + words[2:]
    if len(words) < 2:
        raise CliError(f"requires at least 2 arg(s), only received {len(words)}")
    name, argv = words[0], words[1:]
    box = call.sandboxes.get(name)
    empty = next((number for number, word in enumerate(argv) if not word), None)
    if empty is not None:
        raise CliError(f"request failed: 400 Bad Request: cmd element {empty} is empty")
    return execute(call, box, argv, read_environment(call, options), options["workdir"], options["user"] or "agent", options["tty"], options["detach"])


def find_user(text):
    user, _, group = text.partition(":")
    if user in USERS:
        uid, gid, home = USERS[user]
    elif user.isdecimal():
        uid, gid, home = int(user), 0, "/"
    else:
        raise CliError(f"unable to find user {user}: no matching entries in passwd file")
    if group:
        gid = {"root": 0, "agent": 1000, "docker": 999, "sudo": 27, "nogroup": 65534}.get(group, int(group) if group.isdecimal() else None)
        if gid is None:
            raise CliError(f"unable to find group {group}: no matching entries in group file")
    return uid, gid, home


def default_directory(record):
    if record["clone"]:
        return record["clone"]["path"]
    return record["workspaces"][0] if record["workspaces"] and os.path.isdir(record["workspaces"][0]) else "/home/agent/workspace"


def execute(call, box, argv, extra, workdir, user, terminal, discard):
    """Runs it as a session and copies its stdio; its exit status."""
    uid, gid, home = find_user(user)
    with call.sandboxes.session(box, call) as running:
        record = call.store.sandbox(box.name) or {"env": {}, "clone": None, "workspaces": []}
        environment = {"PATH": GUEST_PATH, "HOME": home, "USER": user.partition(":")[0], "HOSTNAME": box.name, "LANG": "C.UTF-8", **egress.ENVIRONMENT, **record["env"], **extra}
        if terminal:
            environment.setdefault("TERM", call.environment.get("TERM", "xterm"))
        cwd = workdir or default_directory(record)
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
        session = execio.Session(call, discard)
        session.start(lambda *stdio: running.execute([os.fsencode(word) for word in argv], encoded, os.fsencode(cwd), uid, gid, stdio, terminal),
                      bool(call.fault("merge-streams")), terminal)
        return session.run()


# ---- ls --------------------------------------------------------------------------------------------------------------
def listed(call, box, record):
    running = box.is_running
    row = {"name": record["name"], "id": record["id"], "agent": record["agent"], "status": "running" if running else "stopped"}
    if record["workspaces"]:
        row["workspaces"] = record["workspaces"]
        row["workspace_missing"] = not all(os.path.exists(path) for path in record["workspaces"])
    rows = [ports.public(live) for live in call.sandboxes.rows(box)]
    if running and rows:
        row["ports"] = rows
    if versions.has(call.version, "times_in_ls"):
        row["created_at"], row["last_used_at"] = record["created_at"], record["last_used_at"]
    return row


def all_listed(call):
    with call.sandboxes.lock:
        boxes = sorted(call.sandboxes.live.values(), key=lambda box: box.name)
        creating = list(call.sandboxes.creating.values())
    rows = [listed(call, box, record) for box in boxes for record in [call.store.sandbox(box.name)] if record]
    if call.settings["list_creating"]:
        names = {row["name"] for row in rows}
        rows += [{"name": r["name"], "id": r["id"], "agent": r["agent"], "status": "creating"} for r in creating if r["name"] not in names]
    return bend_list(call, rows)


def bend_list(call, rows):
    """The faults of a list."""
    if call.fault("ls-empty"):
        return []
    stale = call.fault("ls-stale")
    if stale:
        call.store.stale = call.store.stale if call.store.stale is not None else rows
        return call.store.stale
    call.store.stale = rows
    odd = call.fault("ls-status")
    for row in rows if odd else []:
        if row["name"] == odd.get("sandbox", row["name"]):
            row["status"] = odd.get("status", "paused")
    return rows


def ls(call, options, words):
    rows = all_listed(call)
    if options["json"]:
        call.print(json.dumps({"sandboxes": rows}, indent=2))
    elif options["quiet"]:
        for row in rows:
            call.print(row["name"])
    elif not rows:
        call.print("No sandboxes found")
    else:
        call.print(table.render(["SANDBOX", "AGENT", "STATUS", "PORTS", "WORKSPACE"], [
            [row["name"], row["agent"], row["status"], ", ".join(map(ports.show, row.get("ports", []))), ", ".join(row.get("workspaces", []))] for row in rows]))


def inspect(call, options, words):
    box = call.sandboxes.get(one_word(words))
    record = call.store.sandbox(box.name)
    row = listed(call, box, record)
    row["state"] = row.pop("status")
    call.print(json.dumps({**row, "cpus": record["cpus"], "memory": record["memory"], "image": record["template"]}, indent=2))


def one_word(words):
    if len(words) != 1:
        raise CliError(f"accepts 1 arg(s), received {len(words)}")
    return words[0]


# ---- stop, rm ----------------------------------------------------------------------------------------------------------
def stop(call, options, words):
    if not words:
        raise CliError("requires at least 1 arg(s), only received 0")
    for name in words:
        try:
            box = call.sandboxes.get(name)
        except CliError:
            raise CliError(f"sandbox '{name}' not found") from None
        call.daemon.pause(call.settings["stop_delay_ms"] / 1000)
        with box.lock:
            call.sandboxes.halt(box)
        call.print(f"Sandbox '{name}' stopped")


def rm(call, options, words):
    if options["all"]:
        with call.sandboxes.lock:
            words = sorted(call.sandboxes.live)
    elif not words:
        raise CliError("requires at least 1 arg(s), only received 0")
    if not options["force"] and words:
        if not os.isatty(call.descriptors[0]) and versions.has(call.version, "decline_fails"):
            raise CliError("stdin is not a terminal; use --force")
        if not call.confirm(f"Remove {', '.join(words)}? (y/N): "):
            return 0
    return max([remove_one(call, name) for name in words], default=0)


def remove_one(call, name):
    try:
        box = call.sandboxes.get(name)
        record = call.store.sandbox(name)
        if record and record["clone"]:
            call.warn(f"WARNING: commits of sandbox '{name}' that were not fetched are lost")
        call.sandboxes.remove(box)
    except CliError as why:
        if "no sandbox named" not in why.text:
            raise
        call.warn(f"{'Error' if call.settings['rm_absent_exit'] == 0 else 'ERROR'}: sandbox '{name}' not found")
        return call.settings["rm_absent_exit"]
    call.print(f"Sandbox '{name}' removed")
    return 0


# ---- ports -----------------------------------------------------------------------------------------------------------
def open_faults(call, rows):
    """Rows as a misbehaving daemon would open them."""
    wrong = call.fault("ports-wrong-interface")
    for row in rows:
        if wrong:
            row["host_ip"] = wrong.get("address", "0.0.0.0" if ":" not in row["host_ip"] else "::")
    return rows


def ports_command(call, options, words):
    box = call.sandboxes.get(one_word(words))
    if options["publish"]:
        with call.sandboxes.session(box, call):
            for spec in options["publish"]:
                publish(call, box, spec)
    for spec in options["unpublish"]:
        unpublish(call, box, spec)
    if options["publish"] or options["unpublish"]:
        return
    rows = [ports.public(row) for row in call.sandboxes.rows(box)]
    if options["json"]:
        call.print(json.dumps(rows, indent=2))
    elif not rows:
        call.print("No published ports")
    else:
        call.print(table.render(["HOST IP", "HOST PORT", "SANDBOX PORT", "PROTOCOL"], [list(row.values()) for row in rows]))


def publish(call, box, spec):
    rows = open_faults(call, ports.rows_of(spec, versions.has(call.version, "tcp4_default")))
    with box.lock:
        call.sandboxes.ensure_running(box, call)
        record, opened = call.store.sandbox(box.name), []
        for row in rows:
            try:
                first = call.sandboxes.rows(box)[-1]["host_port"] if opened else row["host_port"]
                call.sandboxes.open_row(box, row, first, call)
            except CliError:
                for other in opened:
                    call.sandboxes.close_row(box, other["key"])
                raise
            row["started"] = True
            opened.append(row)
        with call.store.lock:
            record["ports"] += opened
            call.store.save()
        live = [box.opened[row["key"]] for row in opened]
    for row, _ in live:
        call.print(f"Published {ports.show(row)}")


def unpublish(call, box, spec):
    fits = ports.unpublish_match(spec)
    with box.lock:
        record = call.store.sandbox(box.name)
        gone = [(key, live) for key, (live, _) in box.opened.items() if fits(live)]
        if not gone:
            raise CliError(f"unpublish port: no published port matches {spec}")
        for key, live in gone:
            call.sandboxes.close_row(box, key)
            record["ports"] = [row for row in record["ports"] if row.get("key") != key]
            call.print(f"Unpublished {ports.show(live)}")
        left = [live for live in call.sandboxes.rows(box) if live["host_port"] == gone[0][1]["host_port"]]
        for live in left:
            call.warn(f"WARNING: {ports.show(live)} is still published")
        with call.store.lock:
            call.store.save()
