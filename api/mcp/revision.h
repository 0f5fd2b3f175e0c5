// Which protocol revision a message speaks, and what that demands of it. Pure, but for the reading of
// headers. Two eras: up to 2025-11-25 a client says its revision in `initialize` and in a header; from
// 2026-07-28 every request says it in params._meta and in headers. A new revision is a row in the table of
// revision.c. A header that comes twice is refused wherever it counts.
#pragma once
#include "api/mcp/jsonrpc_text.h"

enum mcp_era { MCP_LEGACY, MCP_MODERN };
struct mcp_revision {
    const char *name;
    enum mcp_era era;
    bool has_batches;
};
#define MCP_NEWEST_LEGACY "2025-11-25"
#define MCP_MODERN_REVISION "2026-07-28"
#define MCP_BATCH_MAX JSONRPC_MESSAGES_MAX

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define MCP_META_SERVER_INFO "io.modelcontextprotocol/serverInfo"
#define MCP_META_CATALOGUE "dev.chat2shell/catalogue" // "sha256:…" of the tools, in what tells about them

struct mcp_headers { // copies, without blanks around; NULL = absent
    char *version, *method, *name;
    bool is_version_doubled, is_method_doubled, is_name_doubled; // which of them counts cannot be told
};
struct http_request;
void mcp_headers_read(const struct http_request *request, struct mcp_headers *ret);
void mcp_headers_clear(struct mcp_headers *headers);

struct mcp_problem { // why a message is refused
    int http_status, code;
    char message[256];
    json_t *data; // may be NULL; owned
};
const struct mcp_revision *mcp_revision_find(const char *name); // NULL if unknown
const struct mcp_revision *mcp_revision_at(size_t index);       // oldest first; NULL behind the last
size_t mcp_revision_index(const struct mcp_revision *revision);
json_t *mcp_modern_revisions(void);                             // new array of names

// The era of one message, by its body first. -1 with *problem: headers and body contradict, or the revision
// is unknown.
int mcp_find_era(const struct jsonrpc_message *message, const struct mcp_headers *headers, enum mcp_era *ret,
                 struct mcp_problem *problem);
// A response that a client sends: -1 with *problem where its revision knows none.
int mcp_check_response(const struct mcp_headers *headers, struct mcp_problem *problem);
// Modern requests: envelope, revision, headers against body, in this order.
int mcp_check_modern(const struct jsonrpc_message *message, const struct mcp_headers *headers,
                     struct mcp_problem *problem);
// The text that a header value stands for, base64 or plain; NULL if it is malformed. The caller owns it.
char *mcp_decode_header(const char *value);
// Arrays: legal before 2025-06-18 only. Checks size and every element's era; shapes are each element's own
// affair.
int mcp_check_batch(const struct jsonrpc_text *text, const struct mcp_headers *headers,
                    struct mcp_problem *problem);
