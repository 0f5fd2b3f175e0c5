// The `analysis` of a search: who defines, uses, tests and documents a name, by words and file names.
#pragma once
#include "api/guest/tool.h"
#include "api/guest/workspace.h"

struct analysis_question {
    const char *query;
    const char *intent; // as given; NULL or "auto": chosen here
    bool include_tests, is_regex;
    size_t max_matches;
};

int analysis_make(struct tool_call *call, const struct place *place, const struct analysis_question *question,
                  json_t **ret, struct error *err);
extern const struct tool_field analysis_fields[];
