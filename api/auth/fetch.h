// One document by HTTP GET, bounded in size and time: the keys of an authorization server. https with the system's
// certificates (http for loopback), no redirects, 200 only.
#pragma once
#include "controller/base/buffer.h"
#include "controller/base/error.h"

// Blocks: on a thread of its own. text's max bounds the document. ERROR_UNREACHABLE, ERROR_TOO_LARGE, ERROR_UNSUPPORTED.
int fetch_text(const char *url, int timeout_ms, struct buffer *text, struct error *err);
