"""One test a tool and argument, made from the contract: missing, of a wrong type, at and beyond each bound, each word."""
import copy

import bench
from bench import GOOD, named
from c2s import check, equal, test
from contract import TOOLS

WRONG = {"string": (None, 5, True, [], {}), "integer": (None, "5", True, 1.5, [], {}), "boolean": (None, "true", 1, 0, []), "strings": (None, "x", 5, {}, [1], ["x", None]),
         "object": (None, "x", 5, [])}
WRONG["sha256"] = (*WRONG["string"], "", "abc", "g" * 64, "a" * 63, "a" * 65)
HASH = "0123456789abcdef" * 4


def with_value(tool, path, value):
    """The tool's good call with the argument at path (a list of names) set."""
    arguments = copy.deepcopy(GOOD[tool])
    place = arguments
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    return arguments


def without(tool, path):
    arguments = with_value(tool, path, None)
    place = arguments
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return arguments


def must_misfit(tool, path, arguments):
    text = bench.shared().bad(tool, arguments)
    start = f"MCP error -32602: Input validation error: Invalid arguments for tool {tool}: "
    check(text.startswith(start), f"{arguments}: {text[:200]}")
    where = ".".join(path)
    check(all(f" at {where}" in line for line in text[len(start):].split("\n")), f"{arguments}: a line for {where} alone: {text}")


def must_fit(tool, arguments):
    """The arguments pass; the call may fail for a reason of its own."""
    result = bench.shared().result(tool, arguments)
    text = result["content"][0]["text"]
    check(not (result.get("isError") and text.startswith("MCP error")), f"{arguments}: {text[:200]}")


def good_values(kind, rule):
    if kind == "integer":
        return [rule[name] for name in ("min", "max", "default") if name in rule] + [float(rule.get("max", rule["min"] + 4)), rule["min"] + 1, *([] if "max" in rule else [2 ** 40])]
    return {"boolean": (True, False), "sha256": (HASH, HASH.upper()), "strings": ([], ["x"]), "string": rule.get("words", ("x", "é" * 10)), "object": ()}[kind]


def bad_values(kind, rule):
    outside = ([rule["min"] - 1] if "min" in rule else []) + ([rule["max"] + 1, 10 ** 15] if "max" in rule else [])
    words = ("", "no such word", rule["words"][0].upper()) if "words" in rule else ()
    return (*WRONG[kind], *outside, *words)


def register(tool, path, rule):
    kind, name = rule["type"], "_".join(path)
    if rule.get("required"):
        test(named(f"{tool}_without_{name}_is_refused", lambda: must_misfit(tool, path, without(tool, path))))
    else:
        test(named(f"{tool}_works_without_{name}", lambda: must_fit(tool, without(tool, path) if path[-1] in GOOD[tool] else GOOD[tool])))

    def refuses():
        for value in bad_values(kind, rule):
            where = path
            if kind == "strings" and isinstance(value, list):
                where = [*path[:-1], f"{path[-1]}[{len(value) - 1}]"]
            must_misfit(tool, where, with_value(tool, path, value))

    def takes():
        for value in good_values(kind, rule):
            must_fit(tool, with_value(tool, path, value))
    bounds = f"_outside_{rule.get('min', 0)}_to_{rule['max']}" if "max" in rule else f"_below_{rule['min']}" if "min" in rule else ""
    test(named(f"{tool}_refuses_{name}_that_is_no_{kind}{bounds or ''}", refuses))
    if kind != "object":
        test(named(f"{tool}_takes_{name}_of_every_{kind}{'_at_its_bounds' if bounds else ''}", takes))
    for inner, inner_rule in rule.get("members", {}).items():
        register(tool, [*path, inner], inner_rule)


def register_unknown(tool):
    def drops():
        text = bench.shared().result(tool, {**GOOD[tool], "no_such_argument": [1], "workspace": None})["content"][0]["text"]
        check(not text.startswith("MCP error"), text[:200])
    test(named(f"{tool}_drops_unknown_arguments_without_a_word", drops))

    def malformed():
        for arguments in (None, [], "x", 5):
            answer = bench.shared().guest.request("tools/call", {"name": tool, "arguments": arguments})
            equal(answer.get("error", {}).get("code"), -32603, f"arguments {arguments}: {str(answer)[:200]}")
    test(named(f"{tool}_answers_malformed_params_with_a_json_rpc_error", malformed))


for _tool, _row in TOOLS.items():
    register_unknown(_tool)
    for _name, _rule in _row["arguments"].items():
        register(_tool, [_name], _rule)


@test
def an_unknown_tool_is_a_result_that_says_so():
    equal(bench.shared().bad("open_workspace", {}), "MCP error -32602: Tool open_workspace not found", "text")


@test
def several_misfits_are_told_one_a_line():
    text = bench.shared().bad("read", {"path": 5, "start_line": 0, "max_bytes": "x"})
    equal(sorted(line.rpartition(" at ")[2] for line in text.split("\n")), ["max_bytes", "path", "start_line"], text)
