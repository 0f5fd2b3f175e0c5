// The client's side of the bridge: lines in, lines out. The descriptors may be pipes, sockets, files or a terminal that
// other programs share, so they stay in blocking mode: what poll() says decides, and no write is larger than what then
// cannot block.
#pragma once
#include "cli/mcp_bridge_span.h"
#include "controller/base/buffer.h"
#include "controller/base/error.h"

#define MCP_LINE_MAX_BYTES (20u * 1024 * 1024)

struct mcp_input {
    int fd;
    bool is_ended;
    struct buffer bytes;
    size_t seen;              // bytes of the current line that hold no line end
    bool is_discarding;       // inside a line that is too long
    struct mcp_id_search search; // in that line
};
struct mcp_input_line {
    struct mcp_span text; // without its end; borrowed until the next call
    bool is_too_long;     // then text is absent, and
    struct mcp_span id;   // its id, if one could be found
};
void mcp_input_init(struct mcp_input *input, int fd);
void mcp_input_clear(struct mcp_input *input);
// Reads once; the descriptor must be readable. ERROR_IO.
int mcp_input_read(struct mcp_input *input, struct error *err);
// The next line that is whole, blank ones left out; after the end also the last without a line end.
bool mcp_input_next(struct mcp_input *input, struct mcp_input_line *ret);

#define MCP_OUTPUT_HIGH_BYTES (1024 * 1024) // more than this waiting: take no more in
struct mcp_output {
    int fd;
    bool is_closed; // nobody reads any more
    struct buffer bytes;
    size_t sent;
};
void mcp_output_init(struct mcp_output *output, int fd);
void mcp_output_clear(struct mcp_output *output);
void mcp_output_put(struct mcp_output *output, struct mcp_span line); // raw line ends inside become blanks
size_t mcp_output_waiting(const struct mcp_output *output);
void mcp_output_write(struct mcp_output *output); // the descriptor must be writable
