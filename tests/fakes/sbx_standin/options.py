"""Flags the way the real program's parser takes them: anywhere, --name value, --name=value, -nvalue, joined short switches.

A table row: (long, short, kind, doc, since). kind: switch, one, many, or cloud (known, and refused without --cloud)."""
from .errors import CliError

GLOBAL = [
    ("debug", "D", "switch", "Enable debug logging", (0, 0)),
    ("cloud", "", "switch", "Target cloud sandboxes", (0, 42)),
    ("help", "h", "switch", "Print usage", (0, 0)),
]


class Options(dict):
    """Long name to value: bool, str or None, list. given: those that were there; dashdash: index in words of the first after --."""
    given = ()
    dashdash = None


def parse(table, argv, version, interspersed=True):
    """(Options, words). interspersed: flags may follow the first word; else everything after it is left alone."""
    rows = [row for row in table + GLOBAL if version >= row[4]]
    longs, shorts = {row[0]: row for row in rows}, {row[1]: row for row in rows if row[1]}
    options = Options({row[0]: {"switch": False, "many": []}.get(row[2]) for row in rows})
    options.given, words, index = set(), [], 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word == "--":
            options.dashdash = len(words)
            words += argv[index:]
            break
        if word.startswith("--"):
            index = take_long(options, longs, word, argv, index)
        elif word.startswith("-") and word != "-":
            index = take_short(options, shorts, word, argv, index)
        else:
            words.append(word)
            if not interspersed:
                words += argv[index:]
                break
    if options["help"]:
        raise HelpWanted(rows)
    if options.get("cloud"):
        raise CliError("cloud sandboxes are not enabled for this account")
    return options, words


class HelpWanted(Exception):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows


def take_long(options, longs, word, argv, index):
    name, equals, value = word[2:].partition("=")
    row = longs.get(name)
    if not row:
        raise CliError(f"unknown flag: --{name}")
    if row[2] == "switch":
        return put(options, row, value if equals else "true", index)
    if not equals:
        if index >= len(argv):
            raise CliError(f"flag needs an argument: --{name}")
        value, index = argv[index], index + 1
    return put(options, row, value, index)


def take_short(options, shorts, word, argv, index):
    rest = word[1:]
    while rest:
        row = shorts.get(rest[0])
        if not row:
            raise CliError(f"unknown shorthand flag: '{rest[0]}' in {word}")
        rest = rest[1:]
        if row[2] == "switch":
            put(options, row, "true", index)
            continue
        value = rest.removeprefix("=")
        if not rest:
            if index >= len(argv):
                raise CliError(f"flag needs an argument: '{row[1]}' in {word}")
            value, index = argv[index], index + 1
        return put(options, row, value, index)
    return index


def put(options, row, value, index):
    name, kind = row[0], row[2]
    options.given.add(name)
    if kind == "cloud":
        raise CliError(f"--{name} is only supported for cloud sandboxes; use it with --cloud")
    if kind == "switch":
        if value not in ("true", "false", "1", "0"):
            raise CliError(f"invalid argument \"{value}\" for \"--{name}\" flag: strconv.ParseBool: parsing \"{value}\": invalid syntax")
        options[name] = value in ("true", "1")
    elif kind == "many":
        options[name].append(value)
    else:
        options[name] = value
    return index


def usage(command, words, doc, rows):
    lines = [doc, "", f"Usage:  sbx {command} {words}".rstrip(), "", "Flags:"]
    for name, short, kind, text, _ in sorted(rows):
        left = (f"  -{short}, " if short else "      ") + f"--{name}" + {"switch": "", "many": " stringArray"}.get(kind, " string")
        lines.append(f"{left:<34}{text}")
    return "\n".join(lines) + "\n"
