// The official TypeScript SDK's stateless Streamable HTTP server, as its own example has it: a server and a transport for
// each request, JSON answers. It lists tools and answers calls from a file of ready made results (ours): the kindest case for it.
//     node sdk-server.mjs RESULTS.json      (copied into a directory where @modelcontextprotocol/sdk is installed)
// Prints its port on loopback, ends at the end of its input.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const results = JSON.parse(readFileSync(process.argv[2], "utf8"));

function makeServer() {
  const server = new Server({ name: "peer", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, async () => results["tools/list"]);
  server.setRequestHandler(CallToolRequestSchema, async (request) => results[request.params.name]);
  return server;
}

const http = createServer(async (request, response) => {
  const server = makeServer();
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
  response.on("close", () => {
    transport.close();
    server.close();
  });
  await server.connect(transport);
  await transport.handleRequest(request, response);
});
http.listen(0, "127.0.0.1", () => console.log(http.address().port));
process.stdin.on("end", () => process.exit(0)).resume();
