"""The contract as data (codexpro_contract.json), the check of results against it, and a small JSON Schema checker."""
import json
import os
import re

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(os.path.join(HERE, "codexpro_contract.json")) as _file:
    CONTRACT = json.load(_file)
TOOLS = CONTRACT["tools"]
KINDS = {"null": type(None), "boolean": bool, "string": str, "array": list, "object": dict}


def is_kind(value, kind):
    """Whether the value is of the JSON type; no number is a boolean, and 5.0 is an integer."""
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return is_kind(value, "number") and float(value).is_integer()
    return isinstance(value, KINDS[kind])


def fields_of(tool):
    """{name: type} of the tool's result."""
    place = {} if tool in CONTRACT["without_workspace"] else CONTRACT["every_workspace_result"]
    return {**CONTRACT["every_result"], **place, **TOOLS[tool]["result"]}


def is_optional(name, wanted):
    return name.endswith("?") or isinstance(wanted, str) and wanted.endswith("?")


def mismatches(value, wanted, path=""):
    """Sentences: where the value is not what the contract's type says. Fields beyond the contract are no mismatch."""
    if isinstance(wanted, str):
        kinds = wanted.rstrip("?").split("|")
        if "any" not in kinds and not any(is_kind(value, kind) for kind in kinds):
            yield f"{path} is {json.dumps(value)[:80]}, the contract says {wanted}"
    elif isinstance(wanted, list):
        if not isinstance(value, list):
            yield f"{path} is no list"
            return
        for index, item in enumerate(value):
            yield from mismatches(item, wanted[0], f"{path}/{index}")
    elif not isinstance(value, dict):
        yield f"{path} is no object"
    else:
        for name, inner in wanted.items():
            plain = name.rstrip("?")
            if plain in value:
                yield from mismatches(value[plain], inner, f"{path}/{plain}")
            elif not is_optional(name, inner):
                yield f"{path}/{plain} is missing"


def violations(schema, value, path=""):
    """Sentences: where the value breaks the JSON Schema, of which the keywords below are known; another is an error."""
    unknown = schema.keys() - KNOWN.keys() - WITHOUT_RULE
    if unknown:
        raise ValueError(f"schema keywords that this checker does not know: {sorted(unknown)}")
    for keyword, rule in KNOWN.items():
        if keyword in schema:
            yield from rule(schema[keyword], value, path, schema)


def _type(kinds, value, path, _):
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if not any(is_kind(value, kind) for kind in kinds):
        yield f"{path} is not of type {kinds}: {json.dumps(value)[:80]}"


def _required(names, value, path, _):
    if isinstance(value, dict):
        yield from (f"{path}/{name} is missing" for name in names if name not in value)


def _properties(properties, value, path, _):
    if isinstance(value, dict):
        for name, schema in properties.items():
            if name in value:
                yield from violations(schema, value[name], f"{path}/{name}")


def _additional(schema, value, path, whole):
    if isinstance(value, dict):
        for name in value.keys() - whole.get("properties", {}).keys():
            if schema is False:
                yield f"{path}/{name} is not permitted"
            elif isinstance(schema, dict):
                yield from violations(schema, value[name], f"{path}/{name}")


def _items(schema, value, path, _):
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from violations(schema, item, f"{path}/{index}")


def _bound(is_within, words):
    def rule(bound, value, path, _):
        if is_kind(value, "number") and not is_within(value, bound):
            yield f"{path} is {words} {bound}"
    return rule


def _length(is_within, words):
    def rule(bound, value, path, _):
        if isinstance(value, str) and not is_within(len(value), bound):
            yield f"{path} is {words} {bound} characters"
    return rule


def _enum(words, value, path, _):
    if value not in words:
        yield f"{path} is none of {words}"


def _pattern(pattern, value, path, _):
    if isinstance(value, str) and not re.search(pattern, value):
        yield f"{path} does not match {pattern}"


KNOWN = {
    "type": _type, "required": _required, "properties": _properties, "additionalProperties": _additional, "items": _items, "enum": _enum,
    "pattern": _pattern, "minimum": _bound(lambda a, b: a >= b, "below"), "maximum": _bound(lambda a, b: a <= b, "above"),
    "minLength": _length(lambda a, b: a >= b, "shorter than"), "maxLength": _length(lambda a, b: a <= b, "longer than"),
}
WITHOUT_RULE = {"default", "description", "title", "$schema"}
