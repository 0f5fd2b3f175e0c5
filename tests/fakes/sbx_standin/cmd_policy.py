"""policy init, allow, deny, rm, ls, log, check, inspect, reset."""
import json

from . import policy, table
from .errors import CliError
from .store import now

SANDBOX = ("sandbox", "", "one", "Apply to one sandbox only", (0, 0))
FORCE = ("force", "f", "switch", "Do not ask", (0, 0))
JSON = ("json", "", "switch", "Output in JSON format", (0, 0))
RM_FLAGS = [SANDBOX, FORCE, ("id", "", "many", "Rule id", (0, 0)), ("resource", "", "many", "Resource of the rule", (0, 0))]
LS_FLAGS = [JSON, ("wide", "", "switch", "Show ids", (0, 0)), ("type", "", "one", "all, network or filesystem", (0, 0)),
            ("decision", "", "one", "allow or deny", (0, 0)),
            ("source", "", "one", "local, org or kit", (0, 0)), ("include-inactive", "", "switch", "Show inactive rules too", (0, 0))]
LOG_FLAGS = [JSON, ("limit", "", "one", "Most entries (0 = all)", (0, 0)),
             ("type", "", "one", "all or network", (0, 0)), ("quiet", "q", "switch", "Hosts only", (0, 0))]
CHECK_FLAGS = [SANDBOX, JSON, ("verbose", "", "switch", "Tell the rule", (0, 0))]
NETWORK = "network"


def init(call, options, words):
    if len(words) != 1:
        raise CliError("accepts 1 arg(s): allow-all, balanced or deny-all")
    with call.store.lock:
        policy.initialize(call.store.data, words[0])
        call.store.save()
    call.print(f"Policy initialized: {words[0]}")


def network_words(words):
    if words[:1] != [NETWORK]:
        raise CliError(f"unknown resource type \"{words[0] if words else ''}\": must be network")
    return words[1:]


def add(decision):
    def command(call, options, words):
        words = network_words(words)
        if len(words) != 1:
            raise CliError(f"accepts 1 arg(s), received {len(words)}")
        record = call.store.sandbox(options["sandbox"]) if options["sandbox"] else None
        if options["sandbox"] and not record:
            raise CliError(f"no sandbox named '{options['sandbox']}'")
        rule = policy.make_rule(decision, [word.strip() for word in words[0].split(",")], options["sandbox"], record and record["id"])
        with call.store.lock:
            call.store.data["policy"]["rules"].append(rule)
            call.store.save()
        call.print(f"Rule added: {decision} {', '.join(rule['resources'])} ({rule['applies_to']})")
    return command


def rm(call, options, words):
    network_words(words)
    if not options["id"] and not options["resource"]:
        raise CliError("at least one selector is required: use --id or --resource")
    scope = f"sandbox:{options['sandbox']}" if options["sandbox"] else "global"
    with call.store.lock:
        rules = call.store.data["policy"]["rules"]
        gone = [rule for rule in rules if rule["scope"] == scope and (rule["id"] in options["id"] or set(options["resource"]) & set(rule["resources"]))]
    if not gone:
        raise CliError("no matching rule found")
    if not call.confirm_or_force(f"Remove {len(gone)} rule(s)? (y/N): ", options["force"]):
        return
    with call.store.lock:
        call.store.data["policy"]["rules"] = [rule for rule in call.store.data["policy"]["rules"] if rule not in gone]
        call.store.save()
    call.print(f"Removed {len(gone)} rule(s)")


def ls(call, options, words):
    """A name that no sandbox has is not an error."""
    with call.store.lock:
        rules = list(call.store.data["policy"]["rules"])
    if words:
        rules = policy.rules_for(rules, words[0])
    kind, decision, source = options["type"] or "all", options["decision"], options["source"]
    rules = [rule for rule in rules if (kind == "all" or rule["resource_type"].startswith(kind)) and decision in (None, "", "all", rule["decision"])
             and (source in (None, "", "all") or (source == "local") == (rule["origin"] in ("local", "scoped")))]
    if options["json"]:
        call.print(json.dumps({"rules": [policy.public(rule) for rule in rules]}, indent=2))
        return
    headers = (["ID"] if options["wide"] else []) + ["NAME", "APPLIES TO", "TYPE", "DECISION", "RESOURCES", "ORIGIN", "STATUS"]
    call.print(table.render(headers, [([rule["id"]] if options["wide"] else []) + [
        rule["name"], rule["applies_to"], rule["resource_type"], rule["decision"], ",".join(rule["resources"]), rule["origin"], rule["status"]]
        for rule in rules]))


def log(call, options, words):
    """Totals for each host; they outlive the sandbox, as the real ones."""
    with call.store.lock:
        rows = [row for row in call.store.data["log"] if not words or row["vm_name"] == words[0]]
    limit = options["limit"] or "0"
    if not limit.isdecimal():
        raise CliError(f"invalid argument \"{limit}\" for \"--limit\" flag")
    rows = rows[-int(limit):] if int(limit) else rows
    if options["json"]:
        answer = {"blocked_hosts": [row["row"] for row in rows if row["blocked"]], "allowed_hosts": [row["row"] for row in rows if not row["blocked"]]}
        call.print(json.dumps(answer, indent=2))
    elif options["quiet"]:
        for row in rows:
            call.print(row["row"]["host"])
    else:
        call.print(table.render(["SANDBOX", "HOST", "PROXY", "DECISION", "REASON", "COUNT"], [
            [row["vm_name"], row["row"]["host"], row["row"]["proxy_type"], "blocked" if row["blocked"] else "allowed", row["row"]["reason"],
             row["row"]["count_since"]] for row in rows]))


def note(store, sandbox, host, allowed, rule):
    """One attempt, for the log."""
    with store.lock:
        for row in store.data["log"]:
            if (row["vm_name"], row["row"]["host"], row["blocked"]) == (sandbox, host, not allowed):
                row["row"]["count_since"] += 1
                row["row"]["last_seen"] = now()
                break
        else:
            row = {"host": host, "vm_name": sandbox, "proxy_type": "forward", "reason": rule["name"] if rule else "no rule allows it",
                   "since": now(), "last_seen": now(), "count_since": 1}
            store.data["log"] = store.data["log"][-999:] + [{"vm_name": sandbox, "blocked": not allowed, "row": row}]
        store.save()


def check(call, options, words):
    words = network_words(words)
    if len(words) != 1:
        raise CliError(f"accepts 1 arg(s), received {len(words)}")
    host, port = policy.split_port(words[0])
    target = f"{host}:{port or 443}"
    with call.store.lock:
        allowed, rule = policy.decide(call.store.data["policy"]["rules"], options["sandbox"], host, int(port or 443))
    decision = "allow" if allowed else "deny"
    if options["json"]:
        answer = {"target": target, "sandbox": options["sandbox"] or "", "decision": decision, "allowed": allowed}
        call.print(json.dumps({**answer, **({"rule": policy.public(rule)} if rule else {})}, indent=2))
    else:
        call.print(f"{target}: {'allowed' if allowed else 'denied'}" + (f" by rule {rule['name']}" if rule and options["verbose"] else ""))
    return 0 if allowed else call.settings["check_denied_exit"]


def inspect(call, options, words):
    with call.store.lock:
        rule = next((rule for rule in call.store.data["policy"]["rules"] if rule["id"] in words), None)
    if not rule:
        raise CliError(f"rule {words[0] if words else ''} not found")
    call.print(json.dumps(policy.public(rule), indent=2))


def reset(call, options, words):
    """Wipes all local rules and stops every sandbox."""
    if not call.confirm_or_force("Reset all policy rules and stop every sandbox? (y/N): ", options["force"]):
        return
    call.sandboxes.stop_all()
    with call.store.lock:
        call.store.data["policy"] = {"initialized": None, "rules": []}
        call.store.save()
    call.print("Policy reset")
