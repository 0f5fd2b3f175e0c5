"""Rows L1 to L16, L20 and L21, T1 and T2: the revisions up to 2025-11-25, which share a handshake and a header."""
import json
import re

from mcp_wire import ANY, LEGACY, META, MODERN, REVISIONS, Match, all_of, error, having, message, post, request, result, row, saying, without

INSTRUCTIONS = Match("at most 1000 characters of instructions", lambda value: isinstance(value, str) and 0 < len(value) <= 1000)
SERVER = {"name": "chat2shell", "title": "chat2shell", "version": Match("a version", lambda value: re.fullmatch(r"\d+\.\d+\.\d+", value))}
CATALOGUE = {"dev.chat2shell/catalogue": Match("a hash", lambda value: re.fullmatch("sha256:[0-9a-f]{64}", value))}
SANDBOX_ID = "sbx_" + "a" * 26


def initialize(version, **more):
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}, **more})


def shaken(version):
    return result({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": SERVER, "instructions": INSTRUCTIONS, "_meta": CATALOGUE})


def call(revision, tool, arguments=None, **params):
    return request(revision, "tools/call", {"name": tool, **({} if arguments is None else {"arguments": arguments}), **params})


def failing(*words):
    """A tool's own failure: a sentence for the model, and nothing that pretends to be a result."""
    return having(id=7, result=all_of(having(isError=True, content=[{"type": "text", "text": saying(*words)}]), without("structuredContent")))


# ---- L1, L2, L3, L4: versions -----------------------------------------------------------------------------------------------
for version in LEGACY:
    row(f"L1_{version}_is_answered_by_itself", post(initialize(version)), 200, shaken(version), {"Mcp-Session-Id": None})
for version in ("2024-11-05", "1999-01-01", MODERN, "", "2025-06-18 ", "x" * 1000):
    row(f"L1_{version[:20]}_is_answered_by_the_newest_that_shakes_hands", post(initialize(version)), 200, shaken("2025-11-25"))
row("L1_a_version_with_a_nul_is_not_the_one_before_it", post(initialize("2025-03-26\0")), 200, shaken("2025-11-25"))
for text in ("5", "null", "[]"):
    row(f"L1_the_version_{text}_is_refused", post(f'{{"jsonrpc":"2.0","id":7,"method":"initialize","params":{{"protocolVersion":{text}}}}}'), 200,
        error(-32602, "params.protocolVersion must be a string"))
row("L1_a_handshake_without_params_is_refused", post(message("initialize")), 200, error(-32602, "params.protocolVersion must be a string"))
row("L1_a_handshake_with_the_least_there_may_be_is_taken", post(message("initialize", {"protocolVersion": "2025-06-18"})), 200, shaken("2025-06-18"))
for version in (*LEGACY, "1999-01-01"):
    row(f"L2_the_header_{version}_does_not_matter_to_a_handshake", post(initialize("2025-11-25"), [("MCP-Protocol-Version", version)]), 200, shaken("2025-11-25"))
row("L2_the_header_of_2026_contradicts_a_handshake", post(initialize("2025-11-25"), [("MCP-Protocol-Version", MODERN)]), 400,
    error(-32020, saying("initialize", MODERN)))
row("L2_a_doubled_header_is_malformed", post(initialize("2025-11-25"), [("MCP-Protocol-Version", "2025-11-25")] * 2), 400,
    error(-32020, "the MCP-Protocol-Version header is there more than once"))
for version in ("1999-01-01", "2025-11-26", "x", "", "2025-06-18, 2025-06-18", "2025-06-18;a"):
    row(f"L3_the_header_{version}_is_refused", post(message("tools/list"), [("MCP-Protocol-Version", version)]), 400,
        error(-32600, f"MCP-Protocol-Version {version} is not spoken here; accepted are 2025-03-26, 2025-06-18, 2025-11-25 and 2026-07-28"))
for first, second in (("2025-06-18", "2025-06-18"), ("2025-06-18", "2025-11-25"), ("2025-11-25", MODERN)):
    row(f"L3_the_headers_{first}_and_{second}_together_are_refused",
        post(message("tools/list"), [("MCP-Protocol-Version", first), ("mcp-protocol-version", second)]), 400,
        error(-32020, "the MCP-Protocol-Version header is there more than once"))
row("L3_blanks_around_the_version_do_not_matter", post(message("ping"), [("MCP-Protocol-Version", "\t 2025-06-18 \t")]), 200, result({}))
row("L3_doubled_headers_of_2026_do_not_matter_before", post(message("ping"), [("Mcp-Method", "a"), ("Mcp-Method", "b"), ("Mcp-Name", "x"), ("Mcp-Name", "y")]), 200,
    result({}))
row("L4_without_the_header_the_list_is_served", post(message("tools/list")), 200, having(id=7, result=having(tools=ANY)))
row("L4_without_the_header_a_call_is_served", post(message("tools/call", {"name": "sandbox_list"})), 200, having(id=7, result=having(structuredContent={"sandboxes": []})))

# ---- L5, L6, L7: ping, batches, unknown methods -----------------------------------------------------------------------------
for version in LEGACY:
    row(f"L5_ping_is_answered_in_{version}", request(version, "ping"), 200, raw=b'{"jsonrpc":"2.0","id":7,"result":{}}')
row("L5_ping_is_answered_before_any_handshake", post(message("ping")), 200, result({}))

PING, NOTE = message("ping", id=1), message("notifications/x", id=None)
BATCH = f"[{PING},{NOTE},{message('foo', id='b')},{{}}]"
ANSWERS = [result({}, id=1), error(-32601, "unknown method: foo", id="b"), error(-32600, 'jsonrpc must be "2.0"', id=None)]
for name, headers in (("without_a_header", []), ("in_2025-03-26", [("MCP-Protocol-Version", "2025-03-26")])):
    row(f"L6_a_batch_is_answered_in_order_{name}", post(BATCH, headers), 200, ANSWERS)
    row(f"L6_a_batch_of_notifications_is_accepted_{name}", post(f"[{NOTE},{NOTE}]", headers), 202, headers={"Content-Length": "0", "Content-Type": None})
    row(f"L6_a_batch_of_one_is_a_batch_{name}", post(f"[{PING}]", headers), 200, [result({}, id=1)])
    row(f"L6_an_empty_batch_is_refused_{name}", post("[]", headers), 400, error(-32600, "a batch must not be empty", id=None))
for version in ("2025-06-18", "2025-11-25", MODERN):
    row(f"L6_a_batch_is_refused_in_{version}", post(BATCH, [("MCP-Protocol-Version", version)]), 400,
        error(-32600, f"batches are not part of protocol revision {version}: send one message a request", id=None))
row("L6_a_handshake_is_no_part_of_a_batch", post(f"[{PING},{initialize('2025-03-26')}]"), 400, error(-32600, "initialize must not be part of a batch", id=None))
row("L6_50_messages_are_a_batch", post("[" + ",".join([PING] * 50) + "]"), 200, [result({}, id=1)] * 50)
row("L6_51_messages_are_too_many", post("[" + ",".join([PING] * 51) + "]"), 400, error(-32600, "a batch holds at most 50 messages", id=None))
row("L6_an_array_in_a_batch_is_no_message", post(f"[[{PING}]]"), 200, [error(-32600, "a JSON-RPC message must be an object", id=None)])
row("L6_one_id_twice_gets_two_answers", post(f"[{PING},{PING}]"), 200, [result({}, id=1)] * 2)
row("L6_a_doubled_header_is_malformed", post(BATCH, [("MCP-Protocol-Version", "2025-03-26")] * 2), 400, error(-32020, saying("more than once"), id=None))

UNDECLARED = ("prompts/list", "prompts/get", "resources/list", "resources/read", "resources/templates/list", "completion/complete", "logging/setLevel",
              "resources/subscribe", "tasks/list", "subscriptions/listen", "server/discover", "foo/bar", "", "Ping", "rpc.discover", "notifications/initialized")
for version in LEGACY:
    for method in UNDECLARED:
        row(f"L7_{method}_is_unknown_in_{version}", request(version, method), 200, error(-32601, f"unknown method: {method}"))

# ---- L8, L9, L10: GET, DELETE, sessions -------------------------------------------------------------------------------------
for name, method in (("L8", "GET"), ("L9", "DELETE")):
    for version in LEGACY:
        row(f"{name}_{method}_is_not_allowed_in_{version}",
            f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: {version}\r\nMcp-Session-Id: x\r\n\r\n".encode(), 405,
            error(-32600, ANY, id=None), {"Allow": "POST"})
for version in LEGACY:
    row(f"L10_there_are_no_sessions_so_any_is_ignored_in_{version}", request(version, "ping", headers=[("Mcp-Session-Id", "x"), ("Mcp-Session-Id", "y"), ("Last-Event-ID", "1")]), 200,
        result({}), {"Mcp-Session-Id": None})

# ---- L11, L12, T1, T2: the list ---------------------------------------------------------------------------------------------
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def every_tool(what, takes):
    return having(id=7, result=having(tools=Match(what, lambda tools: len(tools) > 0 and all(takes(tool) for tool in tools))))


def is_object_schema(schema):
    return isinstance(schema, dict) and schema.get("type") == "object" and isinstance(schema.get("properties", {}), dict)


for version in REVISIONS:
    listing = request(version, "tools/list")
    for text in ('"zzz"', '""', "5", "{}"):
        row(f"L11_the_cursor_{text}_is_refused_in_{version}", request(version, "tools/list", {"cursor": json.loads(text)}), 200,
            error(-32602, "params.cursor is not one of this server's"))
    row(f"L11_the_list_is_one_page_in_{version}", request(version, "tools/list", {"cursor": None}), 200,
        having(id=7, result=all_of(having(tools=ANY), without("nextCursor"))))
    row(f"L12_inputs_are_closed_objects_in_{version}", listing, 200,
        every_tool("object schemas", lambda tool: is_object_schema(tool["inputSchema"]) and tool["inputSchema"]["additionalProperties"] is False))
    row(f"L12_outputs_are_objects_in_{version}", listing, 200, every_tool("object schemas", lambda tool: is_object_schema(tool["outputSchema"])))
    row(f"L12_no_tool_is_a_task_in_{version}", listing, 200, every_tool("no execution", lambda tool: "execution" not in tool))
    row(f"T1_names_pass_every_client_in_{version}", listing, 200, every_tool("names", lambda tool: re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool["name"])))
    row(f"T2_titles_and_all_hints_are_there_in_{version}", listing, 200,
        every_tool("titles and hints", lambda tool: tool["title"] and tool["description"] and all(isinstance(tool["annotations"][hint], bool) for hint in HINTS)))

# ---- L13 to L16, L20: calls -------------------------------------------------------------------------------------------------
for version in REVISIONS:
    row(f"L13_a_result_is_structured_and_text_in_{version}", call(version, "sandbox_list"), 200,
        having(id=7, result=having(structuredContent={"sandboxes": []},
                                   content=[{"type": "text", "text": Match("its JSON", lambda text: json.loads(text) == {"sandboxes": []})}])))
    for what, tool, arguments, word in (("a_wrong_type", "sandbox_get", {"sandbox_id": 5}, "sandbox_id"), ("a_missing_one", "sandbox_get", {}, "sandbox_id"),
                                        ("an_extra_one", "sandbox_list", {"extra": 1}, "extra"), ("an_unknown_value", "sandbox_create", {"workspace_mode": "x"}, "workspace_mode"),
                                        ("a_number_out_of_range", "sandbox_expose", {"sandbox_id": SANDBOX_ID, "port": 0}, "port"),
                                        ("an_unknown_sandbox", "sandbox_get", {"sandbox_id": SANDBOX_ID}, SANDBOX_ID)):
        row(f"L14_{what}_is_the_tools_own_error_in_{version}", call(version, tool, arguments), 200, failing(word))
    row(f"L15_an_unknown_tool_is_a_protocol_error_in_{version}", call(version, "nope"), 200, error(-32602, "unknown tool: nope"))
    row(f"L15_names_are_case_sensitive_in_{version}", call(version, "Sandbox_list"), 200, error(-32602, "unknown tool: Sandbox_list"))
    row(f"L15_a_number_is_no_tool_in_{version}", call(version, 5), 200, error(-32602, "params.name must be a string: the tool's name"))
    row(f"L15_no_name_is_no_tool_in_{version}", request(version, "tools/call"), 200, error(-32602, "params.name must be a string: the tool's name"))
    row(f"L15_arguments_of_a_wrong_type_are_a_protocol_error_in_{version}", call(version, "sandbox_list", [1]), 200,
        error(-32602, "params.arguments must be an object"))
    row(f"L16_absent_arguments_are_none_in_{version}", call(version, "sandbox_list"), 200, having(id=7, result=having(structuredContent={"sandboxes": []})))
    row(f"L16_null_arguments_are_none_in_{version}", request(version, "tools/call", {"name": "sandbox_list", "arguments": None}), 200,
        having(id=7, result=having(structuredContent={"sandboxes": []})))
    row(f"L20_a_task_is_not_made_of_a_call_in_{version}", call(version, "sandbox_list", {}, task={"ttl": 1000}), 200,
        having(id=7, result=all_of(having(structuredContent={"sandboxes": []}), without("task"))))
for version in LEGACY:
    row(f"L13_nothing_of_2026_is_in_a_result_of_{version}", call(version, "sandbox_list"), 200,
        having(result=without("resultType", "ttlMs", "cacheScope", "_meta")))
    row(f"L13_a_stream_of_one_event_is_the_answer_where_nothing_else_is_taken_in_{version}",
        request(version, "ping", headers=[("Accept", "text/event-stream")]), 200, raw=b'event: message\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n',
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
    row(f"L21_a_stream_has_no_event_ids_in_{version}", request(version, "tools/list", {"cursor": 1}, headers=[("Accept", "text/event-stream")]), 200,
        raw=b'event: message\ndata: {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"params.cursor is not one of this server\'s"}}\n\n')
