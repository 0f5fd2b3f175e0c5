// Heads as they are forwarded, and our own answers. Hop-by-hop fields are dropped, Host comes from the request target,
// framing fields stay as they were (the body passes unchanged).
#pragma once
#include "controller/base/buffer.h"
#include "reconcilers/egress/http.h"
#include "reconcilers/egress/name.h"
#include <stdbool.h>

#define REWRITE_MAX_BYTES (2 * HTTP_MAX_HEAD_BYTES)

// Splits an absolute-form target "http://AUTHORITY/PATH". *ret_path points into the target. -1 with a sentence.
int rewrite_split_target(struct http_text target, struct endpoint *ret, struct http_text *ret_path,
                         const char **ret_problem);
void rewrite_request(const struct http_head *head, const struct endpoint *to, struct http_text path,
                     struct buffer *to_head);
void rewrite_response(const struct http_head *head, bool is_kept_alive, struct buffer *to_head);
// A plain-text answer of our own that ends the connection. word may be NULL.
void rewrite_refusal(int status, const char *word, const char *text, bool has_body, struct buffer *to_answer);
