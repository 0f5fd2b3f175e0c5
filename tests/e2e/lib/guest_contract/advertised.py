"""What tools/list says of each tool: against the contract, and against the catalogue that the daemon serves."""
import os

import bench
from bench import ALL, CATALOGUE, GOOD, NEEDS_NETWORK, REWRITTEN, catalogue, named, nothing
from c2s import check, equal, test
from contract import CONTRACT, TOOLS, fields_of, is_optional

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
JSON_TYPE = {"sha256": "string", "strings": "array"}
# What the daemon narrows on purpose: limits on the length of texts, which protect its own buffers.
NARROWED = ("minLength", "maxLength", "maxItems", "pattern", "description", "default")


def argument_gaps(schema, rules, path=""):
    """Where an inputSchema is not what the contract says."""
    if schema.get("properties", {}).keys() != rules.keys():
        yield f"{path}: arguments {sorted(schema.get('properties', {}))}, the contract has {sorted(rules)}"
        return
    required = sorted(name for name, rule in rules.items() if rule.get("required"))
    if sorted(schema.get("required", [])) != required:
        yield f"{path}: required {schema.get('required')}, the contract requires {required}"
    if schema.get("additionalProperties") is not False:
        yield f"{path}: additionalProperties is not false"
    for name, rule in rules.items():
        yield from one_argument(schema["properties"][name], rule, f"{path}/{name}")


def one_argument(schema, rule, path):
    wanted = {"type": JSON_TYPE.get(rule["type"], rule["type"]), "minimum": rule.get("min"), "maximum": rule.get("max"), "enum": rule.get("words")}
    for keyword, value in wanted.items():
        if schema.get(keyword) != value:
            yield f"{path}: {keyword} {schema.get(keyword)}, the contract says {value}"
    if "default" in schema and schema["default"] != rule.get("default"):
        yield f"{path}: default {schema['default']}, the contract says {rule.get('default')}"
    if rule["type"] in ("integer", "boolean", "string") and rule.get("default") is not None and "default" not in schema:
        yield f"{path}: its default {rule['default']} is not advertised"
    if not schema.get("description"):
        yield f"{path}: no description"
    if "members" in rule:
        yield from argument_gaps(schema, rule["members"], path)


def field_gaps(schema, wanted, path=""):
    """Where an outputSchema lacks what the contract promises. More fields, and words for them, are permitted."""
    for name, inner in wanted.items():
        plain, found = name.rstrip("?"), schema.get("properties", {}).get(name.rstrip("?"))
        if found is None:
            if plain != "bashSessionId":  # optional, and never there without a session of the server's
                yield f"{path}/{plain} is not in the schema"
        elif not is_optional(name, inner) and plain not in schema.get("required", []):
            yield f"{path}/{plain} is not required"
        else:
            yield from one_field(found, inner, f"{path}/{plain}")


def one_field(schema, wanted, path):
    if isinstance(wanted, dict):
        yield from field_gaps(schema, wanted, path)
    elif isinstance(wanted, list):
        yield from one_field(schema.get("items", {}), wanted[0], f"{path}[]")
    elif not wanted.startswith("any"):
        kinds = schema.get("type")
        if sorted(kinds if isinstance(kinds, list) else [kinds]) != sorted(wanted.rstrip("?").split("|")):
            yield f"{path}: type {kinds}, the contract says {wanted}"


def with_rules(schema):
    """What of an argument's schema both have to say alike."""
    kept = {key: value for key, value in schema.items() if key not in NARROWED + ("properties",)}
    return {**kept, "items": with_rules(kept["items"])} if "items" in kept else kept


def catalogue_gaps(ours, theirs, path=""):
    """Where the daemon's inputSchema differs from the guest's in more than what it narrows."""
    if ours.keys() != theirs.keys():
        yield f"{path}: the guest has {sorted(ours)}, the catalogue {sorted(theirs)}"
        return
    for name in ours:
        left, right = (with_rules(side[name]) for side in (ours, theirs))
        if left != right:
            yield f"{path}/{name}: the guest says {left}, the catalogue {right}"
        if "default" in ours[name] and "default" in theirs[name] and ours[name]["default"] != theirs[name]["default"]:
            yield f"{path}/{name}: the defaults differ"
        if "properties" in ours[name]:
            yield from catalogue_gaps(ours[name]["properties"], theirs[name].get("properties", {}), f"{path}/{name}")


def promised_gaps(promised, advertised, path=""):
    """Where the catalogue's outputSchema promises what the guest's does not."""
    for name in promised.get("required", []):
        if name not in advertised.get("required", []):
            yield f"{path}/{name} is required in the catalogue only"
    for name, schema in promised.get("properties", {}).items():
        found = advertised.get("properties", {}).get(name)
        if found is not None and found.get("type") != schema.get("type") and found:
            yield f"{path}/{name}: the catalogue says {schema.get('type')}, the guest {found.get('type')}"
        elif found and "properties" in schema:
            yield from promised_gaps(schema, found, f"{path}/{name}")


def register(tool):
    row = TOOLS[tool]

    def described():
        entry = bench.shared().tools[tool]
        check(entry.get("title") and len(entry.get("description", "")) >= 40, f"title and description: {entry.get('title')} {entry.get('description')}")
        hints = entry["annotations"]
        check(all(isinstance(hints.get(name), bool) for name in HINTS), f"all four hints: {hints}")
        wanted = {name: value for name, value in row["hints"].items() if value is not None}
        told = {name: hints[name] for name in wanted}
        equal(told, wanted, "hints that CodexPro advertises")
    test(named(f"{tool}_has_a_title_a_description_and_four_hints", described))
    test(named(f"{tool}_advertises_the_arguments_of_the_contract", lambda: nothing(argument_gaps(bench.shared().tools[tool]["inputSchema"], row["arguments"]), tool)))
    test(named(f"{tool}_advertises_the_fields_of_the_contract", lambda: nothing(field_gaps(bench.shared().tools[tool]["outputSchema"], fields_of(tool)), tool)))
    if tool not in NEEDS_NETWORK:
        test(named(f"{tool}_succeeds_with_what_it_advertises", succeeds(tool)))
    if tool not in REWRITTEN:
        test(named(f"{tool}_is_in_the_daemons_catalogue_as_the_guest_has_it", lambda: agrees(tool)))


def succeeds(tool):
    def run():
        with bench.Bench() as fresh:
            fresh.good(tool, GOOD[tool])
    return run


def agrees(tool):
    entry, guest = catalogue(tool), bench.shared().tools[tool]
    properties = dict(entry["inputSchema"]["properties"])
    check(properties.pop("sandbox_id", None), "the catalogue adds sandbox_id")
    nothing(catalogue_gaps(guest["inputSchema"]["properties"], properties), "arguments")
    required = [name for name in entry["inputSchema"]["required"] if name != "sandbox_id"]
    equal(sorted(required), sorted(guest["inputSchema"].get("required", [])), "required arguments")
    equal({name: entry["annotations"].get(name) for name in HINTS}, {name: guest["annotations"][name] for name in HINTS}, "hints")
    nothing(promised_gaps(entry["outputSchema"], guest["outputSchema"]), "result")


for _tool in ALL:
    register(_tool)


@test
def the_guest_lists_exactly_the_tools_of_the_contract():
    equal(sorted(bench.shared().tools), sorted(TOOLS), "tools")
    equal(CONTRACT["without_workspace"], ["server_config"], "tools without a workspace")


@test
def the_daemon_catalogue_has_every_tool_of_the_contract():
    import os
    missing = [tool for tool in TOOLS if not os.path.exists(os.path.join(CATALOGUE, f"{tool}.json"))]
    equal(missing, [], "tools without a catalogue entry")
