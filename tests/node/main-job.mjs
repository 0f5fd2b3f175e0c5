// The main job with an official client of the TypeScript SDK, as its documentation has it.
//     node main-job.mjs SDK TRANSPORT REVISION TARGET     (copied to where the packages are installed)
// SDK: v1 (@modelcontextprotocol/sdk) or v2 (@modelcontextprotocol/client). TRANSPORT: http (TARGET: the URL) or stdio (TARGET:
// the program, started with "mcp" and this process's environment). REVISION: what must have been negotiated.
// Prints one line a step; ends with status 1 and the reason at the first that goes wrong.
import assert from "node:assert/strict";

const [sdk, transportKind, revision, target] = process.argv.slice(2);

async function load() {
  if (sdk === "v2") {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    return { Client, StreamableHTTPClientTransport, StdioClientTransport };
  }
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  return { Client, StreamableHTTPClientTransport, StdioClientTransport };
}

const { Client, StreamableHTTPClientTransport, StdioClientTransport } = await load();
const transport =
  transportKind === "http"
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args: ["mcp"], env: process.env, stderr: "inherit" });
const options = sdk === "v2" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "chat2shell-tests", version: "1" }, options);
client.onerror = (error) => console.error(`client: ${error.message}`);
await client.connect(transport);
const negotiated = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? revision;
assert.equal(negotiated, revision, "negotiated revision");
assert.equal(client.getServerVersion().name, "chat2shell");
console.log(`connected with ${negotiated}`);

const { tools } = await client.listTools();
assert.equal(tools.length, 26, "tools");
console.log("listed 26 tools");

async function call(name, args, more) {
  const request = { name, arguments: args };
  const result = await (sdk === "v2" ? client.callTool(request, more) : client.callTool(request, undefined, more));
  assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
  assert.ok(result.structuredContent, `${name} has structured content`);
  return result.structuredContent;
}

const { sandbox } = await call("sandbox_create", {});
const sandbox_id = sandbox.id;
console.log("made a sandbox");
const text = "hëllo\n";
await call("write", { sandbox_id, path: "page.txt", content: text });
const ran = await call("bash", { sandbox_id, command: "cat page.txt; exit 3", yield_time_ms: 60000 });
assert.deepEqual([ran.output, ran.exit_code], [text, 3]);
console.log("wrote a file and ran a command");

const program =
  'use IO::Socket::INET; my $s = IO::Socket::INET->new(LocalAddr => "0.0.0.0:8000", Listen => 5, ReuseAddr => 1) or die; $| = 1; ' +
  'sleep 6; print "ready\\n"; while (my $c = $s->accept) { while (<$c>) { last if /^\\r?$/ } print $c "HTTP/1.0 200 OK\\r\\n\\r\\ninside says hi\\n"; close $c }';
await call("write", { sandbox_id, path: "serve.pl", content: program });
const { session_id } = await call("bash", { sandbox_id, command: "exec perl serve.pl", yield_time_ms: 0 });
const progress = [];
let list;
const polled = call("bash_poll", { sandbox_id, session_id, yield_time_ms: 60000 }, { onprogress: (one) => progress.push(one.progress) });
list = await client.listTools();
assert.equal(list.tools.length, 26, "a list while the poll waits");
assert.equal((await polled).output, "ready\n");
assert.ok(progress.length >= 1, "progress was told");
assert.deepEqual(progress, [...progress].sort((a, b) => a - b), "progress rises");
console.log(`polled a command, with ${progress.length} messages of progress`);

const abort = new AbortController();
const cancelled = call("bash_poll", { sandbox_id, session_id, yield_time_ms: 60000 }, { signal: abort.signal });
setTimeout(() => abort.abort("enough"), 300);
await assert.rejects(cancelled);
assert.equal((await call("bash_poll", { sandbox_id, session_id, yield_time_ms: 0 })).status, "running");
console.log("cancelled a poll; its command runs on");

assert.match((await call("read", { sandbox_id, path: "page.txt" })).text, /hëllo/);
const { hostPort } = await call("sandbox_expose", { sandbox_id, port: 8000 });
assert.equal(await (await fetch(`http://127.0.0.1:${hostPort}/`)).text(), "inside says hi\n");
console.log("fetched the page through the exposed port");

const failed = await client.callTool({ name: "read", arguments: { sandbox_id, path: "none" } });
assert.ok(failed.isError && failed.content[0].text, "a failure in words");
await assert.rejects(client.callTool({ name: "nonsense", arguments: {} }), /unknown tool/);
console.log("failures are told");

await call("sandbox_destroy", { sandbox_id });
assert.deepEqual((await call("sandbox_list", {})).sandboxes, []);
await client.close();
console.log("done");
