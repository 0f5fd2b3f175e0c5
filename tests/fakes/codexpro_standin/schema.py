"""The tools as the server lists them (tools.json), and the check of a call's arguments."""
import copy
import json
import os
import re

DRAFT = "http://json-schema.org/draft-07/schema#"
MINIMAL = ("codexpro", "server_config", "codexpro_self_test", "open_current_workspace", "open_workspace", "read", "write", "edit",
           "apply_patch", "import_file", "bash", "show_changes")
WRITERS = ("write", "edit", "apply_patch", "import_file")


def load(settings):
    """{name: tool} of what these settings offer, in the server's order."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools.json")) as file:
        tools = {tool["name"]: tool for tool in json.load(file)}
    if "bash" in tools:
        tools["bash"]["arguments"]["timeout_ms"]["maximum"] = settings.max_bash_timeout_ms
    return {name: tool for name, tool in tools.items() if is_offered(settings, name)}


def is_offered(settings, name):
    if name == "bash" and settings.bash_mode == "off":
        return False
    if name in WRITERS and settings.write_mode != "workspace":
        return False
    if name == "handoff_to_agent" and settings.write_mode == "handoff":
        return True
    return settings.tool_mode != "minimal" or name in MINIMAL


def listed(tool):
    """The tool's entry in tools/list."""
    schema = {"$schema": DRAFT, "type": "object", "properties": copy.deepcopy(tool["arguments"])}
    if tool["arguments"]:
        schema["additionalProperties"] = False
    if tool["required"]:
        schema["required"] = tool["required"]
    return {
        "name": tool["name"], "title": tool["title"], "description": tool["description"], "inputSchema": schema,
        "annotations": tool["annotations"], "execution": {"taskSupport": "forbidden"},
        "_meta": {"securitySchemes": [{"type": "noauth"}], **tool.get("meta", {})},
    }


def type_of(value):
    for name, kinds in (("null", type(None)), ("boolean", bool), ("number", (int, float)), ("string", str), ("array", list)):
        if isinstance(value, kinds):
            return name
    return "object"


def options_of(schema):
    return " | ".join(f"'{option}'" for option in schema["enum"])


def wrong_type(schema, value):
    wanted, got = "number" if schema["type"] == "integer" else schema["type"], type_of(value)
    if got == wanted:
        return None
    return f"Expected {options_of(schema) if 'enum' in schema else wanted}, received {got}"


def wrong_value(schema, value):
    """All that is wrong with a value of the right type."""
    if "enum" in schema and value not in schema["enum"]:
        yield f"Invalid enum value. Expected {options_of(schema)}, received '{value}'"
    if schema["type"] == "integer" and isinstance(value, float) and not value.is_integer():
        yield "Expected integer, received float"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"Number must be greater than or equal to {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        yield f"Number must be less than or equal to {schema['maximum']}"
    # The advertised pattern is lower case; upper case is taken.
    if "pattern" in schema and not re.search(schema["pattern"], value, re.IGNORECASE):
        yield "Invalid"


def issues_of(schema, value, path):
    problem = wrong_type(schema, value)
    if problem:
        yield f"{problem} at {path}"
        return
    for problem in wrong_value(schema, value):
        yield f"{problem} at {path}"
    if schema["type"] == "object" and "properties" in schema:
        yield from issues_of_object(schema["properties"], schema.get("required", []), value, path + ".")
    if schema["type"] == "array" and "items" in schema:
        for index, item in enumerate(value):
            yield from issues_of(schema["items"], item, f"{path}[{index}]")


def issues_of_object(properties, required, given, prefix):
    for name, schema in properties.items():
        if name in given:
            yield from issues_of(schema, given[name], prefix + name)
        elif name in required:
            yield f"Required at {prefix}{name}"


def check(tool, given):
    """(arguments without unknown ones, text of what is wrong or None). No arguments at all are wrong for every tool."""
    if given is None:
        issues = ["Required" if tool["arguments"] else "Invalid input: expected object, received undefined"]
    else:
        issues = list(issues_of_object(tool["arguments"], tool["required"], given, ""))
    if issues:
        return None, f"MCP error -32602: Input validation error: Invalid arguments for tool {tool['name']}: " + "\n".join(issues)
    kept = {name: value for name, value in given.items() if name in tool["arguments"]}
    return {name: int(value) if tool["arguments"][name]["type"] == "integer" else value for name, value in kept.items()}, None
