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


def is_id(value):
    return isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool) and float(value).is_integer())


def has_only(message, *names):
    return all(name in names for name in message)


def has_params(message):
    return "params" not in message or isinstance(message["params"], dict)


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


def initialize(params, tools, session):
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"resources": {"listChanged": True}, "tools": {"listChanged": True}},
        "serverInfo": {"name": "CodexPro", "version": server_settings.VERSION}, "instructions": INSTRUCTIONS,
    }


def issue(wanted, path, value, is_given):
    problem = [{"expected": wanted, "code": "invalid_type", "path": path,
                "message": f"Invalid input: expected {wanted}, received {type_of(value) if is_given else 'undefined'}"}]
    return RpcError(-32603, json.dumps(problem, indent=2))


def call_tool(params, tools, session):
    if params is None:
        raise issue("object", ["params"], None, False)
    if not isinstance(params.get("name"), str):
        raise issue("string", ["params", "name"], params.get("name"), "name" in params)
    if not isinstance(params.get("arguments", {}), dict):
        raise issue("record", ["params", "arguments"], params["arguments"], True)
    return tools.call(params["name"], params.get("arguments", {}), session.guest)


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
    method = METHODS.get(request["method"])
    try:
        if not method:
            raise RpcError(-32601, "Method not found")
        return {"result": method(request.get("params"), tools, session), "jsonrpc": "2.0", "id": request["id"]}
    except RpcError as why:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": why.code, "message": str(why)}}


def notify(message, session):
    """A notification or a response of the client."""
    if message.get("method") == "notifications/cancelled":
        session.cancel(message.get("params", {}).get("requestId"))
