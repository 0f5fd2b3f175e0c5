"""ls, inspect, stop, rm."""
import json
import os

from . import ports, table, versions
from .errors import CliError

LS_FLAGS = [("json", "", "switch", "Output in JSON format", (0, 0)), ("quiet", "q", "switch", "Only display sandbox names", (0, 0))]
JSON_FLAG = [("json", "", "switch", "Output in JSON format", (0, 0))]
RM_FLAGS = [("force", "f", "switch", "Do not ask, and remove one in use", (0, 0)), ("all", "", "switch", "Remove all sandboxes", (0, 0))]


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
            [row["name"], row["agent"], row["status"], ", ".join(map(ports.show, row.get("ports", []))), ", ".join(row.get("workspaces", []))]
            for row in rows]))


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
