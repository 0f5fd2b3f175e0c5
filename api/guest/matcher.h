// Finds a text or a regular expression in lines. Patterns come from outside, so matching is bounded; PCRE2 makes
// machine code of them where it may. One matcher serves one thread.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stddef.h>

struct matcher;
enum matcher_kind { MATCHER_LITERAL, MATCHER_LITERAL_ANY_CASE, MATCHER_REGEX };

int matcher_compile(enum matcher_kind kind, const char *text, size_t len, struct matcher **ret,
                    struct error *err);
void matcher_free(struct matcher **matcher);
// 1 if the line matches, 0 if not, -1 if the pattern takes too long on it. The line must be valid UTF-8.
int matcher_match(struct matcher *matcher, const char *line, size_t len, struct error *err);
// The literal to look for with memmem before splitting lines, or NULL.
const char *matcher_literal(const struct matcher *matcher, size_t *ret_len);
