// File names as git writes them in its texts: plain, or in double quotes with escapes where a name holds
// control characters, quotes, backslashes or bytes above 0x7f.
#pragma once
#include "controller/base/buffer.h"
#include <stddef.h>

void git_quote(struct buffer *out, const char *name); // quotes only what needs it
// text begins with a double quote. Returns the length up to behind the closing one and the name (the
// caller's), or 0: it is not a quoted name, or the name holds a NUL.
size_t git_unquote(const char *text, size_t len, char **ret_name);
