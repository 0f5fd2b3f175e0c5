// What the single exchange and the many at once share.
#pragma once
#include "api/client/http.h"

#define HTTP_HEAD_MAX_BYTES (64 * 1024) // of a request

int http_connect(const struct http_target *target, int timeout_ms, struct error *err); // a blocking socket, or -1
// keeps: the connection is to stay open behind the answer.
int http_write_head(struct buffer *head, const struct http_target *target, const struct http_ask *ask, bool keeps, struct error *err);
// Of an exchange that is done: it moves out of the reader, to the caller.
struct http_answered http_take_answer(struct answer_reader *reader);
