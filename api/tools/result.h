// What a tool server in a sandbox answered, made into what the public contract promises. The answer is
// untrusted.
//
// A strict client refuses a whole result for one member that does not fit the tool's outputSchema, or for one
// content item of a shape it does not know. So what nobody was promised is taken out, and where something
// promised is missing or wrong the caller gets a failure in words instead.
#pragma once
#include "api/tools/tools.h"

// A CallToolResult: text and image items only, structuredContent as the tool's outputSchema has it; of a
// failure at least one text that says what to do next, and no structuredContent. NULL: it cannot be made into
// one, and err says why. answer is borrowed; what it has in structuredContent may be changed.
json_t *tool_result_clean(const struct catalogue *catalogue, const char *tool, const json_t *answer,
                          struct error *err);
// The next step after a failure of that text (the sentences of the tool servers' contract); NULL if none is
// known.
const char *tool_failure_hint(const char *tool, const char *text);
// A failure in words: what is wrong, and always a second sentence with what to do next. The caller's.
char *tool_failure_words(const char *tool, const struct error *err);
