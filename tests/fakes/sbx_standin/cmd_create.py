"""create, and run, which creates by need and attaches."""
import os
import re
import time

from . import clone, cmd_exec, cmd_ports, images, policy, ports, versions
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
MEBIBYTE = 1 << 20
RUN_FAILED = "failed to create sandbox: failed to run sandbox container"
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def check_name(name, version):
    newest = versions.has(version, "names_checked")
    pattern = r"[A-Za-z0-9][A-Za-z0-9.-]*[A-Za-z0-9]" if newest else r"[A-Za-z0-9][A-Za-z0-9.+-]*[A-Za-z0-9]"
    if not re.fullmatch(pattern, name) or (newest and len(name) > 63):
        raise CliError(f"invalid sandbox name \"{name}\": must be 2 to 63 characters, start and end with a letter or digit, "
                       "and contain only letters, digits, '-' and '.'")
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
        "mounts": paths, "env": cmd_exec.read_environment(call, options), "cpus": check_cpus(options["cpus"]),
        "memory": check_memory(options["memory"], call.version), "created_at": now(), "last_used_at": now(), "ports": [], "clone": None,
        "skills": options.get("skills"),
    }
    for spec in options.get("publish") or []:
        record["ports"] += cmd_ports.open_faults(call, ports.rows_of(spec, versions.has(call.version, "tcp4_default")))
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
    return cmd_exec.execute(call, box, ["/bin/bash"] + (["-c", " ".join(arguments)] if arguments else []), {}, None, "agent", terminal, False)
