-- wrk: every request is the MCP message of the environment variable BENCH_BODY.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Accept"] = "application/json, text/event-stream"
wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
wrk.body = os.getenv("BENCH_BODY")
