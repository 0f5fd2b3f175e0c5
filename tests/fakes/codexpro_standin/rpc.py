"""JSON-RPC and MCP: what counts as a message, and the methods."""
import json

from . import settings as server_settings
from .schema import type_of

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07")
INSTRUCTIONS = ("Open the workspace first and follow its AGENTS file. Look around with tree, search and read; change files with write, edit and "
                "apply_patch and review once with show_changes; keep bash for verification. This server is a stand-in for tests.")


class RpcError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


LARGEST_ID = 2 ** 53 - 1


def is_id(value):
    """Text, or a whole number that the server's language holds exactly."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return False
    return isinstance(value, str) or (abs(value) <= LARGEST_ID and float(value).is_integer())


def has_only(message, *names):
    return all(name in names for name in message)


def has_params(message):
    """No parameters, or an object whose `_meta`, if there is one, is an object, too."""
    params = message.get("params", {})
    return isinstance(params, dict) and isinstance(params.get("_meta", {}), dict)


def is_request(message):
    return (is_id(message.get("id")) and isinstance(message.get("method"), str) and has_params(message)
            and has_only(message, "jsonrpc", "id", "method", "params"))


def is_notification(message):
    return isinstance(message.get("method"), str) and has_params(message) and has_only(message, "jsonrpc", "method", "params")


def is_response(message):
    if isinstance(message.get("result"), dict):
        return is_id(message.get("id")) and has_only(message, "jsonrpc", "id", "result")
    error = message.get("error")
    return (isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
            and ("id" not in message or is_id(message["id"])) and has_only(message, "jsonrpc", "id", "error"))


def is_message(message):
    return isinstance(message, dict) and message.get("jsonrpc") == "2.0" and (is_request(message) or is_notification(message) or is_response(message))


def is_initialize(message):
    if not isinstance(message, dict) or message.get("method") != "initialize" or not isinstance(message.get("params"), dict):
        return False
    params = message["params"]
    client = params.get("clientInfo")
    return (isinstance(params.get("protocolVersion"), str) and isinstance(params.get("capabilities"), dict) and isinstance(client, dict)
            and isinstance(client.get("name"), str) and isinstance(client.get("version"), str))


# What initialize must have: (path, type).
INITIALIZE_FIELDS = ((("protocolVersion",), "string"), (("capabilities",), "object"), (("clientInfo",), "object"))


def initialize(params, tools, session):
    wrong = [issue(wanted, ["params", *path], params or {}, path[-1]) for path, wanted in INITIALIZE_FIELDS if type_of((params or {}).get(path[-1])) != wanted]
    if wrong:
        raise RpcError(-32603, json.dumps(wrong, indent=2))
    asked = params["protocolVersion"]
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"resources": {"listChanged": True}, "tools": {"listChanged": True}},
        "serverInfo": {"name": "CodexPro", "version": server_settings.VERSION}, "instructions": INSTRUCTIONS,
    }


def issue(wanted, path, holder, name):
    """What is wrong with a member of an object."""
    got = type_of(holder[name]) if name in holder else "undefined"
    return {"expected": wanted, "code": "invalid_type", "path": path, "message": f"Invalid input: expected {wanted}, received {got}"}


def refuse(*issue_arguments):
    return RpcError(-32603, json.dumps([issue(*issue_arguments)], indent=2))


def call_tool(params, tools, session):
    if params is None:
        raise refuse("object", ["params"], {}, "params")
    if not isinstance(params.get("name"), str):
        raise refuse("string", ["params", "name"], params, "name")
    if not isinstance(params.get("arguments", {}), dict):
        raise refuse("record", ["params", "arguments"], params, "arguments")
    return tools.call(params["name"], params.get("arguments"), session.guest)


METHODS = {
    "initialize": initialize,
    "ping": lambda params, tools, session: {},
    "tools/list": lambda params, tools, session: tools.list(),
    "tools/call": call_tool,
    "resources/list": lambda params, tools, session: {"resources": []},
    "resources/templates/list": lambda params, tools, session: {"resourceTemplates": []},
}


def handle(request, tools, session):
    """The answer to one request."""
    request_id = int(request["id"]) if isinstance(request["id"], float) else request["id"]
    method = METHODS.get(request["method"])
    try:
        if not method:
            raise RpcError(-32601, "Method not found")
        return {"result": method(request.get("params"), tools, session), "jsonrpc": "2.0", "id": request_id}
    except RpcError as why:
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": why.code, "message": str(why)}}


def notify(message, session):
    """A notification or a response of the client."""
    if message.get("method") == "notifications/cancelled":
        session.cancel(message.get("params", {}).get("requestId"))
