"""The table of commands, and one call from its words to its exit status."""
import json
import os
import sys

from . import cmd_cp, cmd_create, cmd_exec, cmd_host, cmd_list, cmd_policy, cmd_ports, images, options, settings, versions
from .errors import CliError

# words: (handler, flags, flags may follow words, usage, doc, since)
OLD = (0, 0)
COMMANDS = {
    "create": (cmd_create.create, cmd_create.CREATE_FLAGS, True, "[flags] AGENT|SANDBOX_KIT [PATH...]", "Create a sandbox for an agent", OLD),
    "run": (cmd_create.run, cmd_create.RUN_FLAGS, True, "[flags] [AGENT] [PATH...] [-- AGENT_ARGS...]", "Run an agent in a sandbox", OLD),
    "exec": (cmd_exec.exec_command, cmd_exec.EXEC_FLAGS, False, "[flags] SANDBOX COMMAND [ARG...]", "Execute a command inside a sandbox", OLD),
    "ls": (cmd_list.ls, cmd_list.LS_FLAGS, True, "[flags]", "List sandboxes", OLD),
    "inspect": (cmd_list.inspect, cmd_list.JSON_FLAG, True, "SANDBOX", "Display details of a sandbox", versions.FEATURES["inspect"]),
    "stop": (cmd_list.stop, [], True, "SANDBOX [SANDBOX...]", "Stop sandboxes without removing them", OLD),
    "rm": (cmd_list.rm, cmd_list.RM_FLAGS, True, "[flags] [SANDBOX...]", "Remove sandboxes", OLD),
    "ports": (cmd_ports.ports_command, cmd_ports.PORTS_FLAGS, True, "[flags] SANDBOX", "Manage published ports", OLD),
    "cp": (cmd_cp.cp, cmd_cp.FLAGS, True, "[flags] SRC DST", "Copy files between a sandbox and the host", OLD),
    "template ls": (images.ls, images.LS_FLAGS, True, "[flags]", "List templates", OLD),
    "template save": (images.save, images.SAVE_FLAGS, True, "[flags] SANDBOX NAME:TAG", "Save a sandbox as a template", OLD),
    "template load": (images.load, [], True, "FILE.tar", "Load a template", OLD),
    "template rm": (images.rm, images.RM_FLAGS, True, "[flags] NAME:TAG", "Remove a template", OLD),
    "policy init": (cmd_policy.init, [], True, "allow-all|balanced|deny-all", "Set up the network policy", OLD),
    "policy allow": (cmd_policy.add("allow"), [cmd_policy.SANDBOX], True, "network [flags] RESOURCES", "Allow network resources", OLD),
    "policy deny": (cmd_policy.add("deny"), [cmd_policy.SANDBOX], True, "network [flags] RESOURCES", "Deny network resources", OLD),
    "policy rm": (cmd_policy.rm, cmd_policy.RM_FLAGS, True, "network [flags]", "Remove rules", OLD),
    "policy ls": (cmd_policy.ls, cmd_policy.LS_FLAGS, True, "[flags] [SANDBOX]", "List rules", OLD),
    "policy log": (cmd_policy.log, cmd_policy.LOG_FLAGS, True, "[flags] [SANDBOX]", "Show what was allowed and blocked", OLD),
    "policy check": (cmd_policy.check, cmd_policy.CHECK_FLAGS, True, "network [flags] TARGET", "Tell what the policy decides", (0, 35)),
    "policy inspect": (cmd_policy.inspect, [cmd_policy.JSON], True, "ID", "Show a rule", (0, 35)),
    "policy reset": (cmd_policy.reset, [cmd_policy.FORCE], True, "[flags]", "Remove all rules", OLD),
    "secret set": (cmd_host.secret_set, cmd_host.SECRET_FLAGS, True, "[flags] SERVICE", "Set a secret", OLD),
    "secret ls": (cmd_host.secret_ls, [cmd_host.JSON], True, "[flags]", "List secrets", OLD),
    "secret rm": (cmd_host.secret_rm, cmd_host.SECRET_FLAGS, True, "[flags] SERVICE", "Remove a secret", OLD),
    "settings list": (cmd_host.settings_list, cmd_host.SETTINGS_FLAGS, True, "[flags]", "List settings", OLD),
    "settings get": (cmd_host.settings_get, [cmd_host.JSON], True, "KEY", "Show a setting", OLD),
    "settings set": (cmd_host.settings_set, [], True, "KEY VALUE", "Change a setting", OLD),
    "settings unset": (cmd_host.settings_unset, [], True, "KEY", "Back to the default", OLD),
    "mcp ls": (cmd_host.mcp_ls, [cmd_host.JSON], True, "[flags]", "List MCP servers", OLD),
    "version": (cmd_host.version, cmd_host.VERSION_FLAGS, True, "", "Show the version", OLD),
    "login": (cmd_host.login, cmd_host.LOGIN_FLAGS, True, "[flags]", "Sign in to Docker", OLD),
    "logout": (cmd_host.logout, [], True, "", "Sign out of Docker", OLD),
    "diagnose": (cmd_host.diagnose, cmd_host.DIAGNOSE_FLAGS, True, "[flags]", "Diagnose problems", OLD),
    "daemon status": (cmd_host.daemon_status, [cmd_host.JSON], True, "[flags]", "Show the daemon's status", OLD),
    "daemon stop": (cmd_host.daemon_stop, [], True, "", "Stop the daemon", OLD),
    "daemon log-level": (cmd_host.daemon_log_level, [], True, "set LEVEL", "Set the log level", OLD),
    "daemon start": (None, [("detach", "d", "switch", "In the background", OLD), ("policy", "", "one", "Policy to set up", OLD)], True, "[flags]", "Start the daemon", OLD),
    "daemon restart": (None, [], True, "", "Restart the daemon", OLD),
    "prune": (cmd_host.prune, cmd_host.PRUNE_FLAGS, True, "[flags]", "Remove stopped sandboxes", OLD),
    "reset": (cmd_host.reset, [cmd_host.FORCE], True, "[flags]", "Remove everything", OLD),
}
ALIASES = {"list": "ls", "save": "template save", "load": "template load"}
GROUPS = {name.split()[0] for name in COMMANDS if " " in name}
WITHOUT_LOGIN = {"version", "login", "logout", "diagnose", "daemon status", "daemon stop", "daemon log-level", "settings list", "settings get", "reset"}
NOT_SIGNED_IN = "request failed: 401 Unauthorized: no valid user session found, please sign in to Docker to proceed"


def find(argv, version):
    """(command's name, the words after it). Global flags may come first."""
    index = 0
    while index < len(argv) and argv[index] in ("-D", "--debug", "--cloud"):
        index += 1
    leading, rest = argv[:index], argv[index:]
    if not rest:
        raise options.HelpWanted([])
    if rest[0].startswith("-"):
        raise CliError(f"unknown flag: {rest[0]}")
    name, used = ALIASES.get(rest[0], rest[0]), 1
    if name in GROUPS:
        if len(rest) < 2 or rest[1].startswith("-"):
            raise options.HelpWanted([])
        name, used = f"{name} {rest[1]}", 2
    name = "settings list" if name == "settings ls" else name
    row = COMMANDS.get(name)
    if not row or not row[0] or version < row[5]:
        raise CliError(f"unknown command \"{rest[used - 1]}\" for \"sbx{' ' + rest[0] if used == 2 else ''}\"")
    return name, leading + rest[used:]


def execute(call):
    """The exit status; what it prints is in call.out and call.err."""
    try:
        name, words = find(call.argv, call.version)
        handler, flags, interspersed, usage, doc, _ = COMMANDS[name]
        parsed, words = options.parse(flags, words, call.version, interspersed)
        if name not in WITHOUT_LOGIN and not call.store.data["logged_in"]:
            raise CliError(NOT_SIGNED_IN)
        return handler(call, parsed, words) or 0
    except options.HelpWanted as why:
        call.out.append(help_text(call.argv, call.version, why.rows))
        return 0
    except CliError as why:
        first, _, rest = why.text.partition("\n")
        call.warn(f"ERROR: {first}" + (f"\n\n{rest}" if rest else ""))
        return why.code


def help_text(argv, version, rows=()):
    words = [ALIASES.get(word, word) for word in argv if not word.startswith("-")]
    name = next((" ".join(words[:n]) for n in (2, 1) if " ".join(words[:n]) in COMMANDS), None)
    if name:
        _, flags, _, usage, doc, _ = COMMANDS[name]
        return options.usage(name, usage, doc, list(rows) or [row for row in flags + options.GLOBAL if version >= row[4]])
    group = words[0] if words and words[0] in GROUPS else ""
    names = [known for known, row in sorted(COMMANDS.items()) if version >= row[5] and (not group or known.split()[0] == group)]
    lines = [f"  {known:<18}{COMMANDS[known][4]}" for known in names]
    return "\n".join([f"Usage:  sbx {group + ' ' if group else ''}COMMAND", "", "Commands:"] + lines) + "\n"


def print_help(argv):
    """The client's own: help starts no daemon."""
    state = os.path.join(os.environ.get("HOME", "/"), ".local/state/sandboxes/sandboxes/sandboxd")
    sys.stdout.write(help_text(argv, client_version(settings.Settings(state), os.environ)))
    sys.stdout.flush()
    return 0


def client_version(known, environment):
    known.refresh()
    found = versions.parse(environment.get("SBX_STANDIN_VERSION") or known["version"])
    if not found or found < versions.OLDEST:
        raise settings.BadSettings(f"the stand-in plays releases from {versions.show(versions.OLDEST)} on")
    return found


def json_of(text):
    """(what stands before it, the value) of the first JSON in a text; None where there is none."""
    start = min([at for at in (text.find("{"), text.find("[")) if at >= 0], default=-1)
    try:
        return (text[:start], json.loads(text[start:])) if start >= 0 else None
    except ValueError:
        return None
