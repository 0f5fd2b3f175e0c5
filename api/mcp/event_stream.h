// A POST's answer as a stream of server-sent events: JSON-RPC messages, and a comment whenever nothing was sent for a
// while, so that proxies keep the connection. Events carry no ids: a stream cannot be taken up again. What is waiting for
// the client is bounded: a client that does not read misses messages, all but the last ones, and is closed in the end.
// Loop thread only.
#pragma once
#include "api/http/http.h"

#define EVENT_STREAM_KEEP_ALIVE_MS (15 * 1000)

extern const struct http_reply event_stream_reply;

struct event_stream;
// The answer of request. queue_max: bytes that may wait for the client. gone: the client hung up or the server stops,
// before event_stream_end; it may run inside.
struct event_stream *event_stream_start(struct http_request *request, struct loop *loop, size_t queue_max, http_gone_fn gone,
                                        void *arg);
// message: JSON text. False: it does not fit behind what the client has not read yet, and was dropped.
bool event_stream_send(struct event_stream *stream, const char *message, size_t len);
// The last events (event_stream_wrap; allocated, taken; NULL with len 0: none), then the end. Frees the stream.
void event_stream_end(struct event_stream *stream, char *events, size_t len);
// Messages as the text of events: appends one. message holds no raw line ends. -1 over the buffer's maximum.
struct buffer;
int event_stream_wrap(struct buffer *events, const char *message, size_t len);
