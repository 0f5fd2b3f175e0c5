"""Rows M1 to M12, M17 and M18: 2026-07-28, where every request says its revision in its body and repeats itself in headers."""
import base64

from mcp_wire import (ANY, META, MODERN, SERVER_INFO, TEXT, Match, all_of, envelope, error, having, message, modern_headers, post, request, row, saying,
                      without)
from mcp_rows_legacy import CATALOGUE, INSTRUCTIONS, SERVER, UNDECLARED, initialize

IS_MODERN = having(resultType="complete", _meta=having(**{SERVER_INFO: SERVER}))
HINTED = all_of(having(cacheScope="private"), having(ttlMs=Match("milliseconds", lambda value: type(value) is int and value >= 0)))


def body(method, **params):
    return message(method, {**params, "_meta": params.get("_meta", envelope())})


def missing(key):
    return {name: value for name, value in envelope().items() if name != META + key}


def mistyped(key, value):
    return {**envelope(), META + key: value}


# ---- M1, M9, M10, M11: results ----------------------------------------------------------------------------------------------
row("M1_discover_is_complete", request(MODERN, "server/discover"), 200,
    {"jsonrpc": "2.0", "id": 7, "result": {"resultType": "complete", "supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": INSTRUCTIONS,
                                           "ttlMs": 300000, "cacheScope": "private", "_meta": {SERVER_INFO: SERVER, **CATALOGUE}}})
row("M1_discover_needs_its_envelope", post(message("server/discover"), modern_headers("server/discover")), 400, error(-32602, saying("params._meta")))
row("M9_a_list_is_complete", request(MODERN, "tools/list"), 200, having(id=7, result=all_of(IS_MODERN, having(tools=ANY))))
for name, arguments in (("sandbox_list", {}), ("workspace_list", {}), ("sandbox_get", {"sandbox_id": 5})):
    row(f"M9_a_call_of_{name}_is_complete", request(MODERN, "tools/call", {"name": name, "arguments": arguments}), 200, having(id=7, result=IS_MODERN))
row("M10_a_list_may_be_kept", request(MODERN, "tools/list"), 200, having(result=HINTED))
row("M10_discover_may_be_kept", request(MODERN, "server/discover"), 200, having(result=HINTED))
row("M10_a_call_may_not_be_kept", request(MODERN, "tools/call", {"name": "sandbox_list"}), 200, having(result=without("ttlMs", "cacheScope")))
row("M11_the_server_says_who_it_is", request(MODERN, "tools/call", {"name": "sandbox_list"}), 200, having(result=having(_meta={SERVER_INFO: SERVER})))

# ---- M2, M7: the envelope ---------------------------------------------------------------------------------------------------
for key, meta in (("protocolVersion", missing("protocolVersion")), ("clientCapabilities", missing("clientCapabilities")),
                  ("protocolVersion", mistyped("protocolVersion", 5)), ("protocolVersion", mistyped("protocolVersion", None)),
                  ("protocolVersion", mistyped("protocolVersion", 2**70)), ("clientCapabilities", mistyped("clientCapabilities", [])),
                  ("clientCapabilities", mistyped("clientCapabilities", None)), ("clientCapabilities", mistyped("clientCapabilities", "x"))):
    row(f"M2_{key}_{'absent' if META + key not in meta else meta[META + key]}_is_refused", post(body("tools/list", _meta=meta), modern_headers("tools/list")), 400,
        error(-32602, saying(META + key)))
for params in (None, {}, {"_meta": None}, {"_meta": 5}, {"_meta": {}}, {"_meta": {META + "clientInfo": {}}}):
    row(f"M2_the_params_{params}_lack_the_envelope", post(message("tools/list", params), modern_headers("tools/list")), 400,
        error(-32602, saying(META + "protocolVersion")))
row("M2_clientInfo_and_logLevel_are_not_needed", request(MODERN, "tools/list"), 200, having(id=7, result=IS_MODERN))
row("M2_strange_members_of_the_envelope_are_ignored",
    request(MODERN, "server/discover", {"_meta": {"openai/session": 5, META + "clientInfo": 5, META + "logLevel": "loud", "traceparent": "x", "progressToken": 2**70}}),
    200, having(id=7, result=IS_MODERN))
for version in ("2099-01-01", "2025-11-25", "", "2026-07-28\0"):
    shown = version.replace("\0", "")
    row(f"M7_{version!r}_is_not_spoken", post(body("tools/list", _meta=envelope(version)), modern_headers("tools/list", version=shown)), 400,
        error(-32022, TEXT, data={"supported": [MODERN], "requested": version}))
for version in ("2099-01-01", "2026-07-28 ", "v999"):
    row(f"M7_{version!r}_beside_a_header_of_a_spoken_version_is_a_mismatch", post(body("tools/list", _meta=envelope(version)), modern_headers("tools/list")), 400,
        error(-32020, saying("differs from params._meta")))
row("M7_an_unspoken_version_counts_before_its_headers", post(body("tools/list", _meta=envelope("2099-01-01"))), 400,
    error(-32022, TEXT, data={"supported": [MODERN], "requested": "2099-01-01"}))

# ---- M3, M4: headers --------------------------------------------------------------------------------------------------------
DIFFERS, ABSENT = "the MCP-Protocol-Version header differs from params._meta", "the MCP-Protocol-Version header is missing beside params._meta"
for version in ("2025-11-25", "2025-03-26", "1999-01-01", "", MODERN + "x"):
    row(f"M3_the_header_{version}_contradicts_the_body", request(MODERN, "tools/list", raw=body("tools/list"), headers=[]).replace(
        f"MCP-Protocol-Version: {MODERN}".encode(), f"MCP-Protocol-Version: {version}".encode()), 400, error(-32020, DIFFERS))
row("M3_the_version_header_is_demanded", post(body("tools/list"), [("Mcp-Method", "tools/list")]), 400, error(-32020, ABSENT))
TWICE = "the {} header is there more than once"
row("M3_a_doubled_version_header_is_malformed", request(MODERN, "tools/list", headers=[("mcp-protocol-version", MODERN)]), 400,
    error(-32020, TWICE.format("MCP-Protocol-Version")))
row("M4_the_method_header_is_demanded", post(body("tools/list"), [("MCP-Protocol-Version", MODERN)]), 400, error(-32020, "the Mcp-Method header is missing"))
for method in ("Tools/list", "tools/call", "tools/listx", "", "=?base64?dG9vbHMvbGlzdA==?="):
    row(f"M4_the_method_header_{method}_is_wrong", post(body("tools/list"), modern_headers(method)), 400, error(-32020, "the Mcp-Method header differs from the method"))
row("M4_a_doubled_method_header_is_malformed", request(MODERN, "tools/list", headers=[("MCP-METHOD", "tools/list")]), 400, error(-32020, TWICE.format("Mcp-Method")))
row("M4_header_names_have_no_case", post(body("tools/list"), [("mcp-PROTOCOL-version", MODERN), ("MCP-method", "tools/list")]), 200, having(id=7, result=IS_MODERN))

CALL = body("tools/call", name="sandbox_list")
SERVED = having(id=7, result=having(structuredContent={"sandboxes": []}))
NAME_DIFFERS, NAME_MALFORMED = "the Mcp-Name header differs from params.name", "the Mcp-Name header is malformed"


def named(*names):
    return post(CALL, modern_headers("tools/call") + [("Mcp-Name", name) for name in names])


def coded(text):
    return f"=?base64?{base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()}?="


row("M4_the_name_header_is_demanded", named(), 400, error(-32020, "the Mcp-Name header is missing"))
for name in ("other", "Sandbox_list", "sandbox_list2", "", '"sandbox_list"'):
    row(f"M4_the_name_header_{name}_is_wrong", named(name), 400, error(-32020, NAME_DIFFERS))
row("M4_a_doubled_name_header_is_malformed", named("sandbox_list", "sandbox_list"), 400, error(-32020, TWICE.format("Mcp-Name")))
row("M4_the_first_of_two_name_headers_does_not_count", named("sandbox_list", "bash"), 400, error(-32020, TWICE.format("Mcp-Name")))
row("M4_a_blank_before_the_colon_is_no_header", post(CALL, [*modern_headers("tools/call"), ("Mcp-Name ", "sandbox_list")]), 400,
    error(-32600, TEXT, id=None))
row("M4_a_name_with_a_nul_is_not_the_one_before_it", post(body("tools/call", name="sandbox_list\0"), modern_headers("tools/call", "sandbox_list")), 400,
    error(-32020, NAME_DIFFERS))
row("M4_a_name_header_of_other_methods_is_ignored", request(MODERN, "tools/list", headers=[("Mcp-Name", "x"), ("Mcp-Name", "y")]), 200, having(id=7, result=IS_MODERN))
row("M4_params_that_name_nothing_are_the_methods_to_refuse", post(body("tools/call", name=5), modern_headers("tools/call")), 200,
    error(-32602, "params.name must be a string: the tool's name"))
for method, member in (("prompts/get", "name"), ("resources/read", "uri")):
    row(f"M4_{method}_needs_its_name_header_before_it_is_unknown", post(body(method, **{member: "x"}), modern_headers(method)), 400,
        error(-32020, "the Mcp-Name header is missing"))
    row(f"M4_{method}_is_unknown", post(body(method, **{member: "x"}), modern_headers(method, "x")), 404, error(-32601, f"unknown method: {method}"))
row("M4_unknown_Mcp_headers_are_ignored", request(MODERN, "tools/list", headers=[("Mcp-Param-X", "1"), ("Mcp-Param-X", "2"), ("Mcp-Else", "x")]), 200,
    having(id=7, result=IS_MODERN))

# ---- M5, M6: how a name may be written --------------------------------------------------------------------------------------
row("M5_blanks_around_values_do_not_count",
    post(CALL, [("MCP-Protocol-Version", f" \t{MODERN}\t "), ("Mcp-Method", "\ttools/call \t"), ("Mcp-Name", "\t sandbox_list \t")]), 200, SERVED)
row("M6_a_name_in_base64_is_decoded", named(coded("sandbox_list")), 200, SERVED)
for name, said in ((coded("other"), NAME_DIFFERS), (coded("Sandbox_list"), NAME_DIFFERS), (coded(" sandbox_list"), NAME_DIFFERS), ("=?base64?!?=", NAME_MALFORMED),
                   ("=?base64?c2FuZGJveF9saXN0", NAME_DIFFERS), ("=?BASE64?c2FuZGJveF9saXN0?=", NAME_DIFFERS), ("=?base64?c2FuZGJveF9saXN?=", NAME_MALFORMED),
                   ("=?base64?c2FuZGJveF9saXN0 ?=", NAME_MALFORMED), ("=?base64??=", NAME_DIFFERS), (coded(b"\xff"), NAME_MALFORMED), (coded(b"a\0"), NAME_MALFORMED),
                   ("sandbox_list\udcc3\udca9", NAME_MALFORMED), ("\udcff", NAME_MALFORMED)):
    row(f"M6_{name.encode('ascii', 'backslashreplace').decode()}_is_refused", named(name), 400, error(-32020, said))
row("M6_a_name_beyond_ascii_is_compared_decoded", post(body("tools/call", name="é"), modern_headers("tools/call", coded("é"))), 200,
    error(-32602, "unknown tool: é"))

# ---- M8, M12, M17: what is gone ---------------------------------------------------------------------------------------------
for method in (*(method for method in UNDECLARED if method not in ("server/discover", "prompts/get", "resources/read")), "ping", "initialize", "resources/unsubscribe"):
    row(f"M8_{method}_is_not_there", request(MODERN, method), 404, error(-32601, f"unknown method: {method}"))
row("M8_a_handshake_with_an_envelope_is_not_there", post(initialize("2025-11-25", _meta=envelope()), modern_headers("initialize")), 404,
    error(-32601, "unknown method: initialize"))
for method in ("GET", "DELETE"):
    row(f"M12_{method}_is_not_allowed", f"{method} /mcp HTTP/1.1\r\nHost: localhost\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Session-Id: x\r\n\r\n".encode(), 405,
        error(-32600, ANY, id=None), {"Allow": "POST"})
row("M12_sessions_are_ignored_and_none_is_made", request(MODERN, "tools/list", headers=[("Mcp-Session-Id", "x"), ("Last-Event-ID", "1")]), 200, having(id=7, result=IS_MODERN),
    {"Mcp-Session-Id": None})
ARRAY = f"[{body('tools/list')}]"
for name, headers in (("without_a_header", []), ("with_its_header", modern_headers("tools/list")), ("with_an_older_header", [("MCP-Protocol-Version", "2025-03-26")])):
    row(f"M17_a_batch_is_refused_{name}", post(ARRAY, headers), 400, error(-32600, saying("batches are not part", MODERN), id=None))
row("M17_one_modern_element_is_enough", post(f"[{message('ping')},{body('tools/list')}]"), 400, error(-32600, saying("batches", MODERN), id=None))
