"""ports: list, publish, unpublish."""
import json

from . import ports, table, versions
from .cmd_list import one_word
from .errors import CliError

PORTS_FLAGS = [
    ("json", "", "switch", "Output in JSON format", (0, 0)),
    ("publish", "", "many", "Publish a port", (0, 0)),
    ("unpublish", "", "many", "Unpublish a port", (0, 0)),
]


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
