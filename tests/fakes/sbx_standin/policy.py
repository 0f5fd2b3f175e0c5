"""Network policy: patterns, rules and what they decide. Nothing leaves the stand-in's sandboxes whatever the rules say; they are
stored, listed and checked as the real ones."""
import ipaddress
import re

from .errors import CliError
from .store import new_id, now

BALANCED = ["**.docker.io", "**.docker.com", "registry.npmjs.org", "pypi.org", "files.pythonhosted.org", "github.com", "**.githubusercontent.com",
            "crates.io", "static.crates.io", "proxy.golang.org", "deb.debian.org", "archive.ubuntu.com", "ports.ubuntu.com", "security.ubuntu.com"]
INITIAL = {"allow-all": ["**"], "balanced": BALANCED, "deny-all": []}
HOST = re.compile(r"(\*{1,2}\.)?([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*\.?")


def split_port(pattern):
    """(host part, port or None)."""
    if pattern.startswith("["):
        host, _, port = pattern[1:].partition("]")
        return host, port.removeprefix(":") or None
    host, colon, port = pattern.rpartition(":")
    return (host, port) if colon and port.isdecimal() else (pattern, None)


def check_pattern(pattern):
    if pattern == "**":
        return
    if pattern == "*" or not pattern:
        raise CliError(f"invalid network resource \"{pattern}\": use \"**\" to match every host")
    if pattern.count(":") > 1 and not pattern.startswith("["):
        try:
            ipaddress.ip_network(pattern, strict=False)
        except ValueError:
            pass
        else:
            if "/" not in pattern:
                raise CliError(f"invalid network resource \"{pattern}\": an IPv6 address must be written in brackets")
            return
    host, port = split_port(pattern)
    if port is not None and not 0 < int(port) < 65536:
        raise CliError(f"invalid network resource \"{pattern}\": invalid port")
    try:
        ipaddress.ip_network(host, strict=False)
    except ValueError:
        if not HOST.fullmatch(host) and host != "**":
            raise CliError(f"invalid network resource \"{pattern}\"") from None


def covers(pattern, host, port):
    """Whether a pattern means this host and port. **.x also means x itself; an exact host has no subdomains; *.x is one label."""
    wanted, wanted_port = split_port(pattern)
    if wanted_port is not None and int(wanted_port) != port:
        return False
    wanted, host = wanted.lower().rstrip("."), host.lower().rstrip(".")
    if wanted == "**":
        return True
    if wanted.startswith("**."):
        return host == wanted[3:] or host.endswith(wanted[2:])
    if wanted.startswith("*."):
        label, dot, rest = host.partition(".")
        return bool(label and dot) and rest == wanted[2:]
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(wanted, strict=False)
    except ValueError:
        return host == wanted


def rules_for(rules, sandbox):
    scopes = {"global"} | ({f"sandbox:{sandbox}"} if sandbox else set())
    return [rule for rule in rules if rule["scope"] in scopes]


def decide(rules, sandbox, host, port):
    """(allowed, the rule that decided or None). Deny beats allow whatever their order; without a rule it is denied."""
    hits = [rule for rule in rules_for(rules, sandbox) if rule["resource_type"] == "network" and any(covers(p, host, port) for p in rule["resources"])]
    denied = next((rule for rule in hits if rule["decision"] == "deny"), None)
    return (False, denied) if denied else (bool(hits), hits[0] if hits else None)


def make_rule(decision, resources, sandbox=None, sandbox_id=None, name=None):
    for pattern in resources:
        check_pattern(pattern)
    scope = f"sandbox:{sandbox}" if sandbox else "global"
    rule = {
        "id": new_id(), "name": name or f"{decision}-{resources[0]}", "policy_id": "local", "scope": scope, "applies_to": scope if sandbox else "all",
        "resource_type": "network", "decision": decision, "resources": list(resources), "origin": "scoped" if sandbox else "local", "status": "active",
        "editable": True, "created_at": now(),
    }
    if sandbox_id:
        rule["sandbox_id"] = sandbox_id
    return rule


def initialize(data, policy):
    if policy not in INITIAL:
        raise CliError(f"invalid policy \"{policy}\": must be one of allow-all, balanced, deny-all")
    if data["policy"]["initialized"]:
        raise CliError(f"policy is already initialized ({data['policy']['initialized']}); run 'sbx policy reset' to start over")
    data["policy"]["initialized"] = policy
    if INITIAL[policy]:
        data["policy"]["rules"].append(make_rule("allow", INITIAL[policy], name=policy))


def public(rule):
    return {key: value for key, value in rule.items() if key != "created_at"}
