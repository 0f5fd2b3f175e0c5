"""Every result of a tool against what tools/list says of that tool, with a validator that nobody here wrote, and against what
strict clients demand of a CallToolResult. tests/e2e/lib/c2s.py checks each result of each end-to-end test with it."""
import base64
import json
import re
import sys

try:
    import jsonschema
except ImportError:  # a python3 that is not Debian's own
    sys.path.append("/usr/lib/python3/dist-packages")
    import jsonschema

# A second sentence: the first says what is wrong.
NEXT_STEP = re.compile(r"[.!?\"] (Hint: )?[A-Za-z`]")
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def content_gaps(items):
    for item in items if isinstance(items, list) else ["content is no array"]:
        if not isinstance(item, dict):
            yield f"an item is {item!r}"
        elif item.get("type") == "text":
            if item.keys() != {"type", "text"} or not isinstance(item["text"], str):
                yield f"a text item with {sorted(item)}"
        elif item.get("type") == "image":
            if item.keys() != {"type", "data", "mimeType"} or item["mimeType"] not in IMAGES or not base64.b64decode(item["data"], validate=True):
                yield f"an image item with {sorted(item)} of {item.get('mimeType')}"
        else:
            yield f"an item of type {item.get('type')}"


def has_text(result):
    return any(item.get("type") == "text" and item.get("text") for item in result["content"])


class Results:
    """The validators of one tools/list."""

    def __init__(self, tools):
        self.tools = {tool["name"]: tool for tool in tools}
        self.validators = {}
        for name, tool in self.tools.items():
            for schema in (tool["inputSchema"], tool["outputSchema"]):
                jsonschema.Draft202012Validator.check_schema(schema)
            self.validators[name] = jsonschema.Draft202012Validator(tool["outputSchema"])
        self.seen = set()

    def gaps(self, tool, result):
        """Sentences: where the result is not what a strict client takes."""
        found = list(content_gaps(result.get("content")))
        found += [f"member {name}" for name in result.keys() - {"content", "structuredContent", "isError", "_meta", "resultType"}]
        if found:
            return found
        self.seen.add((tool, bool(result.get("isError"))))
        return list(self.failure_gaps(result) if result.get("isError") else self.success_gaps(tool, result))

    def success_gaps(self, tool, result):
        structured = result.get("structuredContent")
        if not isinstance(structured, dict):
            yield "no structuredContent"
            return
        for misfit in self.validators[tool].iter_errors(structured):
            yield f"{misfit.json_path}: {misfit.message[:300]}"
        if not has_text(result):
            yield "no text"
        elif "codexpro_tool" not in structured and json.loads(result["content"][0]["text"]) != structured:
            yield "the text is not the structured content"

    def failure_gaps(self, result):
        if not has_text(result):
            yield "a failure without words"
        elif not NEXT_STEP.search(result["content"][0]["text"]):
            yield f"a failure that does not say what to do next: {result['content'][0]['text'][:300]}"
        if "structuredContent" in result:
            yield "a failure with structuredContent"
