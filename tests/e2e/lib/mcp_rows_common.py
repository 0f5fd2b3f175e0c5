"""Rows C2 to C18 and T3: what holds in every revision, from the request's head to its id."""
from mcp_wire import (ANY, BOTH, JSON_TYPE, LEGACY, MODERN, REVISIONS, SERVER_INFO, TEXT, Raw, all_of, envelope, error, having, message, modern_headers,
                      post, request, result, row, saying, without)

PING = message("ping")
PONG = result({})
EMPTY = {"Content-Length": "0", "Content-Type": None}
SANDBOXES = {"sandboxes": []}
LISTED = having(content=[{"type": "text", "text": ANY}], structuredContent=SANDBOXES)
REFUSED_ID = saying("id must be")


def list_call(revision, **more):
    return request(revision, "tools/call", {"name": "sandbox_list"}, **more)


def head(method, path="/mcp", *lines):
    return "".join(f"{line}\r\n" for line in [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, ""]).encode()


# ---- C2, C3, C4: who may come -----------------------------------------------------------------------------------------------
ORIGIN = error(-32600, "requests from this Origin are refused: web pages cannot use this server")
HOST = error(-32600, saying("the Host header does not name this machine", "connect to 127.0.0.1"))
for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example", "http://localhost:80:80", "file://", "localhost", "", "http://"):
    row(f"C2_origin_{origin}_is_refused", post(PING, [("Origin", origin)]), 403, ORIGIN)
for origin in ("http://localhost:3000", "https://127.0.0.1", "HTTP://[::1]:1"):
    row(f"C2_origin_{origin}_is_served", post(PING, [("Origin", origin)]), 200, PONG)
row("C2_two_origins_are_refused", post(PING, [("Origin", "http://localhost"), ("Origin", "http://evil.example")]), 400, error(-32600, TEXT, id=None))
for revision in REVISIONS:
    row(f"C2_a_foreign_origin_is_refused_in_{revision}", request(revision, "tools/list", headers=[("Origin", "http://evil.example")]), 403, ORIGIN)
for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:18788", "[::1]", "[::1]:80"):
    row(f"C3_host_{host}_is_served", post(PING, [("Host", host)]), 200, PONG)
for host in ("evil.example", "127.0.0.1.evil.example", "localhost:", "localhost:x", "127.0.0.2", "localhost.", "[::1", "a@localhost", "0.0.0.0"):
    row(f"C3_host_{host}_is_refused", post(PING, [("Host", host)]), 403, HOST)
row("C4_a_doubled_host_is_refused", post(PING, [("Host", "localhost"), ("Host", "localhost")]), 400, error(-32600, saying("Host"), id=None))
row("C4_a_missing_host_is_refused", post(PING, [("Host", None)]), 400, raw=ANY)  # by the HTTP library, in its words

# ---- C5, C6: media types ----------------------------------------------------------------------------------------------------
for kind in ("application/json", "Application/JSON; charset=UTF-8", "application/json;x=\"y\"", "application/json ;a=b"):
    row(f"C5_content_type_{kind}_is_taken", post(PING, [("Content-Type", kind)]), 200, PONG)
for kind in ("text/plain", "application/jsonx", "application/x-www-form-urlencoded", "json", "", None):
    row(f"C5_content_type_{kind}_is_refused", post(PING, [("Content-Type", kind)]), 415,
        error(-32600, "the request body must be JSON: send Content-Type: application/json"))
row("C5_a_coded_body_is_refused", post(PING, [("Content-Encoding", "gzip")]), 415, error(-32600, saying("coded")))
for accept in (None, "*/*", "application/*", "application/json", "text/html, application/json;q=0.1", "application/json;q=1.0", "", BOTH):
    row(f"C6_accept_{accept}_gets_json", post(PING, [("Accept", accept)]), 200, PONG)
for accept in ("text/html", "application/json;q=0", "application/json; q=0.000, */*", "*/*;q=0", "text/event-stream;q=0"):
    row(f"C6_accept_{accept}_is_refused", post(PING, [("Accept", accept)]), 406,
        error(-32600, "answers are JSON, which the Accept header excludes: accept application/json"))
row("C6_accept_event_streams_only_gets_one_event", post(PING, [("Accept", "text/event-stream")]), 200,
    raw=b'event: message\ndata: {"jsonrpc":"2.0","id":7,"result":{}}\n\n', headers={"Content-Type": "text/event-stream"})

# ---- C7: notifications ------------------------------------------------------------------------------------------------------
for revision in REVISIONS:
    for method in ("notifications/initialized", "notifications/cancelled", "notifications/unheard_of", "tools/call"):
        row(f"C7_{method}_is_accepted_without_an_answer_in_{revision}", request(revision, method, {"requestId": 9}, id=None), 202, headers=EMPTY)
row("C7_a_notification_without_params_is_accepted", post(message("notifications/initialized", id=None)), 202, headers=EMPTY)
row("C7_a_modern_notification_needs_no_envelope", post(message("notifications/x", id=None), [("MCP-Protocol-Version", MODERN)]), 202, headers=EMPTY)
row("C7_a_refused_notification_has_no_id", post(message("notifications/x", id=None), [("MCP-Protocol-Version", "1999-01-01")]), 400,
    error(-32600, saying("1999-01-01", MODERN), id=None))
row("C7_a_response_is_dropped_before_2026", post('{"jsonrpc":"2.0","id":1,"result":{}}'), 202, headers=EMPTY)
row("C7_a_response_is_refused_in_2026", post('{"jsonrpc":"2.0","id":1,"result":{}}', [("MCP-Protocol-Version", MODERN)]), 400,
    error(-32600, saying("no responses"), id=None))
row("C7_a_response_of_an_unknown_revision_is_refused", post('{"jsonrpc":"2.0","id":1,"error":{}}', [("MCP-Protocol-Version", "x")]), 400,
    error(-32600, TEXT, id=None))

# ---- C8: legal ids come back byte for byte ----------------------------------------------------------------------------------
IDS = ["0", "-0", "-1", "1", "2147483648", "9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
       "18446744073709551616", "7" * 400, "-" + "9" * 1023, '""', '"a"', '"1"', '"null"', r'"\u0000"', r'"a\u0000b"', r'"\u00e9 \u2028"', r'"\u00E9"',
       '"é €"', '"\u2028"', r'"\ud83d\ude00"', '"😀"', r'"\/\\\"\b"', '"}],"', '"' + "x" * 65534 + '"', '"\x7f"']


def short(text):
    return (text if len(text) < 40 else f"{text[:8]}…{len(text)}").encode("ascii", "backslashreplace").decode()


for text in IDS:
    bytes_ = text.encode()
    row(f"C8_{short(text)}_in_a_result", post(message("ping", id=Raw(text))), 200, raw=b'{"jsonrpc":"2.0","id":%s,"result":{}}' % bytes_)
    row(f"C8_{short(text)}_in_an_error", post(message("x", id=Raw(text))), 200,
        raw=b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method: x"}}' % bytes_)
    row(f"C8_{short(text)}_in_a_404_of_2026", request(MODERN, "x", id=Raw(text)), 404,
        raw=b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown method: x"}}' % bytes_)
    row(f"C8_{short(text)}_in_a_batch", post(f'[{message("ping", id=Raw(text))},{message("ping", id=Raw("1"))}]'), 200,
        raw=b'[{"jsonrpc":"2.0","id":%s,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]' % bytes_)
    row(f"C8_{short(text)}_of_a_tool_call", request("2025-06-18", "tools/call", {"name": "nope"}, id=Raw(text)), 200,
        raw=b'{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"unknown tool: nope"}}' % bytes_)
row("C8_the_id_may_stand_behind_params_that_hold_others", post('{"params":{"id":1,"_meta":{"id":2}},"jsonrpc":"2.0","method":"ping","id":3}'), 200,
    raw=b'{"jsonrpc":"2.0","id":3,"result":{}}')
row("C8_the_key_may_be_written_in_escapes", post(r'{"jsonrpc":"2.0","\u0069\u0064":"x","method":"ping"}'), 200, raw=b'{"jsonrpc":"2.0","id":"x","result":{}}')
for revision in REVISIONS:
    row(f"C8_an_id_beyond_64_bits_reaches_a_tool_in_{revision}", list_call(revision, id=10**30), 200,
        having(jsonrpc="2.0", id=10**30, result=LISTED))

# ---- C9: other ids ----------------------------------------------------------------------------------------------------------
for text in ("null", "true", "false", "1.5", "1.0", "1e0", "-1E2", "[]", "[1]", "{}", '{"id":1}', "1e400"):
    row(f"C9_{text}_is_no_id", post(message("ping", id=Raw(text))), 400, error(-32600, TEXT, id=None))
    row(f"C9_{text}_is_no_id_in_2026", request(MODERN, "tools/list", id=Raw(text)), 400, error(-32600, TEXT, id=None))
row("C9_an_integer_of_1025_digits_is_no_id", post(message("ping", id=Raw("1" * 1025))), 400, error(-32600, saying("1024 characters"), id=None))
row("C9_a_string_above_64_KiB_is_no_id", post(message("ping", id="x" * 65535)), 400, error(-32600, "id must be a string of at most 64 KiB of JSON text", id=None))
row("C9_half_a_surrogate_pair_is_no_id", post(message("ping", id=Raw(r'"\ud800"'))), 400, error(-32600, saying("surrogate"), id=None))
row("C9_two_ids_are_none", post('{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}'), 400, error(-32600, saying("twice"), id=None))

# ---- C10: JSON and what is none ---------------------------------------------------------------------------------------------
for text in ("", " ", "{", "}", "{}x", "[1,]", '{"id":7,}', "{'id':7}", '{"id":07}', '{"id":\x01}', '{"a":"\udcff"}', "\ufeff{}", "nul", "NaN", '"x', '{"id":7} {}'):
    data = text.encode("utf-8", "surrogateescape")
    row(f"C10_{text.encode('unicode_escape').decode()}_is_no_json", post(data), 400, error(-32700, TEXT, id=None))
row("C10_a_parse_error_says_where", post('{"jsonrpc":"2.0",\n "id":7, x}'), 400,
    error(-32700, "the body is not JSON in UTF-8: it goes wrong at line 2, byte 10 of it", id=None))
row("C10_an_empty_body_is_told_what_to_send", post(""), 400, error(-32700, "the body is empty: send one JSON-RPC message", id=None))
row("C10_a_nul_byte_is_no_end", post(PING.encode() + b"\0"), 400, error(-32700, TEXT, id=None))
for text in ("5", '"x"', "null", "true", "-0.5e3"):
    row(f"C10_{text}_is_no_message", post(text), 400, error(-32600, "a JSON-RPC message must be an object", id=None))
for text in ("{}", '{"jsonrpc":"2.0"}', '{"jsonrpc":"2.0","id":null}'):
    row(f"C10_{text}_is_no_message", post(text), 400, error(-32600, TEXT, id=None))
for text, said in (('{"jsonrpc":"2.0","id":7}', "method must be a string"), ('{"jsonrpc":"2.0","id":7,"method":5}', "method must be a string"),
                   ('{"jsonrpc":"2.0","id":7,"method":"ping\\u0000"}', "method must be a string")):
    row(f"C10_{text}_is_no_request", post(text), 400, error(-32600, said))

# ---- C11, C12: params and jsonrpc -------------------------------------------------------------------------------------------
for text in ("[]", '"x"', "5", "true", "1.5"):
    for version in (*LEGACY, MODERN):
        row(f"C11_params_{text}_are_refused_in_{version}", request(version, "tools/list", raw=f'{{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{text}}}'),
            400, error(-32600, "params must be an object"))
row("C11_params_null_count_as_absent", post('{"jsonrpc":"2.0","id":7,"method":"ping","params":null}'), 200, PONG)
row("C11_a_strange_meta_is_ignored", post(message("ping", {"_meta": 5})), 200, PONG)
for text in ('"1.0"', "2.0", "null", '"2.0\\u0000"', '""'):
    for version in REVISIONS:
        row(f"C12_jsonrpc_{text}_is_refused_in_{version}", request(version, "ping", raw=f'{{"jsonrpc":{text},"id":7,"method":"ping"}}'), 400,
            error(-32600, 'jsonrpc must be "2.0"'))
row("C12_without_jsonrpc_nothing_is_run", post('{"id":7,"method":"ping"}'), 400, error(-32600, 'jsonrpc must be "2.0"'))

# ---- C13, C14: other methods and paths --------------------------------------------------------------------------------------
NOT_ALLOWED = error(-32600, "this path does not take that method: use the method that the Allow header names", id=None)
for method in ("GET", "PUT", "PATCH", "DELETE", "OPTIONS"):
    row(f"C13_{method}_is_not_allowed", head(method, "/mcp", "Content-Length: 0"), 405, NOT_ALLOWED, {"Allow": "POST", "Access-Control-Allow-Origin": None})
row("C13_HEAD_is_not_allowed", head("HEAD"), 405, headers={"Allow": "POST"}, has_body=False)
NOWHERE = error(-32600, TEXT, id=None)
for path in ("/", "/mcp/x", "/mcp/", "/MCP", "/apis", "/approvals", "/mcp%2f"):
    row(f"C14_GET_{path}_is_not_there", head("GET", path), 404, NOWHERE)
    row(f"C14_POST_{path}_is_not_there", post(PING, path=path), 404, error(-32600, TEXT))
for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
    row(f"C14_{path}_says_that_there_is_no_authorization", head("GET", path), 404, NOWHERE, JSON_TYPE)

# ---- T3: who is refused before the message is looked at still gets its id ------------------------------------------------------------
for text in ("0", "-0", '"a"', "18446744073709551616", '""'):
    row(f"T3_a_refusal_by_a_header_repeats_the_id_{text}", post(f'{{"jsonrpc":"2.0","id":{text},"method":"ping"}}', [("Accept", "text/html")]), 406,
        raw=f'{{"jsonrpc":"2.0","id":{text},"error":{{"code":-32600,"message":"answers are JSON, which the Accept header excludes: accept application/json"}}}}'.encode())
REFUSED_BODIES = {"a_notification": '{"jsonrpc":"2.0","method":"notifications/initialized"}', "an_answer": '{"jsonrpc":"2.0","id":7,"result":{}}',
                  "a_batch": '[{"jsonrpc":"2.0","id":7,"method":"ping"}]', "no_json": '{"id":7', "two_ids": '{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}',
                  "more_than_64_kib": '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":"' + 65536 * "x" + '"}}'}
for what, text in REFUSED_BODIES.items():
    row(f"T3_a_refusal_of_{what}_has_no_id", post(text, [("Accept", "text/html")]), 406, error(-32600, TEXT, id=None))

row("T3_a_refusal_before_the_announced_body_was_sent_has_no_id", post(PING, [("Accept", "text/html"), ("Expect", "100-continue")]), 406,
    error(-32600, TEXT, id=None))

# ---- C16, C18: answers ------------------------------------------------------------------------------------------------------
for revision in LEGACY:
    row(f"C18_initialize_is_json_in_{revision}", request(revision, "initialize", {"protocolVersion": revision, "_meta": {"progressToken": 1}}), 200,
        having(id=7, result=having(protocolVersion=revision)), JSON_TYPE)
for revision in REVISIONS:
    row(f"C18_the_tool_list_is_json_in_{revision}", request(revision, "tools/list", {"_meta": {"progressToken": 1}}), 200,
        having(id=7, result=all_of(having(tools=ANY), without("nextCursor"))), JSON_TYPE)
row("C18_discover_is_json", request(MODERN, "server/discover", {"_meta": {"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"}}), 200,
    having(id=7, result=having(supportedVersions=[MODERN])), JSON_TYPE)

# ---- T3: limits and refusals keep the request's id --------------------------------------------------------------------------
for name, text, said in (
        ("values", '"x":[1' + ",1" * 100000 + "]", "the message holds more than 100000 values"),
        ("depth", '"x":' + "[" * 64 + "]" * 64, "the message is nested deeper than 64 levels"),
        ("digits", '"x":' + "1" * 1025, "the message holds a number of more than 1024 characters"),
        ("size_of_a_number", '"x":1e400', "the message holds a number that is too large for a 64-bit float"),
        ("keys_with_nul", '"x":{"\\u0000":1}', "the message holds a key with a NUL character"),
        ("halves_of_pairs", '"x":"\\ud800"', "the message holds a string with half of a surrogate pair"),
        ("doubled_keys", '"x":{"a":1,"a":2}', saying("an object holds a key twice"))):
    row(f"T3_a_limit_on_{name}_names_the_request", post('{"jsonrpc":"2.0","method":"ping",' + text + ',"id":"é"}'), 400,
        error(-32600, said, id="é"))
row("T3_what_just_fits_is_served", post('{"jsonrpc":"2.0","method":"ping","x":' + "[" * 63 + "]" * 63 + ',"y":[' + ",".join("1" * 99000) + '],"id":7}'), 200, PONG)
row("T3_no_answer_repeats_what_is_large", post(message("x" * 200000, {"_meta": envelope("y" * 200000)})), 400,
    error(-32022, TEXT, data={"supported": [MODERN], "requested": "y" * 64}))
row("T3_a_long_method_is_shown_cut", post(message("x" * 200000)), 200, error(-32601, "unknown method: " + "x" * 64))
row("T3_a_word_is_cut_between_characters", post(message("é" * 100)), 200, error(-32601, "unknown method: " + "é" * 32))
row("T3_a_word_is_cut_between_long_characters", post(message("x" + "😀" * 100)), 200, error(-32601, "unknown method: x" + "😀" * 15))
row("T3_an_unknown_revision_keeps_the_id", post(PING, [("MCP-Protocol-Version", "1999-01-01")]), 400, error(-32600, saying("1999-01-01")))

# ---- big integers in arguments ----------------------------------------------------------------------------------------------
for version in REVISIONS:
    row(f"C8_an_argument_beyond_64_bits_is_refused_by_name_in_{version}",
        request(version, "tools/call", {"name": "sandbox_expose", "arguments": {"sandbox_id": "sbx_" + "a" * 26, "port": 2**64}}), 200,
        having(id=7, result=having(isError=True, content=[{"type": "text", "text": saying("port", "integer")}])))
row("C8_a_large_integer_where_nobody_looks_does_no_harm", post(message("ping", {"_meta": {"x": 2**64}})), 200, PONG)
