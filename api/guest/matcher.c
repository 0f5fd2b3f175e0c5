#define PCRE2_CODE_UNIT_WIDTH 8
#include "api/guest/matcher.h"
#include "api/guest/tool.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include <pcre2.h>
#include <string.h>

#define MATCH_LIMIT 2000000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT_KIB 16384
#define MAX_PATTERN_BYTES 20000
#define JIT_STACK_MIN (32 * 1024)
#define JIT_STACK_MAX (1024 * 1024)

struct matcher {
    char *literal; // NULL: regex
    size_t literal_len;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack; // NULL: interpreted, or on the thread's own
};

void matcher_free(struct matcher **at)
{
    struct matcher *matcher = *at;
    if (!matcher)
        return;
    free(matcher->literal);
    pcre2_code_free(matcher->code);
    pcre2_match_data_free(matcher->data);
    pcre2_match_context_free(matcher->limits);
    if (matcher->stack)
        pcre2_jit_stack_free(matcher->stack);
    free(matcher);
    *at = NULL;
}

// Where the kernel refuses memory that is written and executed, the pattern is interpreted: the limits hold
// in both.
static void compile_to_machine_code(struct matcher *matcher)
{
    if (pcre2_jit_compile(matcher->code, PCRE2_JIT_COMPLETE) < 0)
        return;
    matcher->stack = pcre2_jit_stack_create(JIT_STACK_MIN, JIT_STACK_MAX, NULL);
    if (matcher->stack)
        pcre2_jit_stack_assign(matcher->limits, NULL, matcher->stack);
}

static int compile_regex(struct matcher *matcher, uint32_t options, const char *text, size_t len,
                         struct error *err)
{
    int code;
    PCRE2_SIZE offset;
    PCRE2_UCHAR words[160];
    matcher->code = pcre2_compile((PCRE2_SPTR)text, len, options | PCRE2_UTF, &code, &offset, NULL);
    if (!matcher->code) {
        pcre2_get_error_message(code, words, sizeof(words));
        return guest_tool_fail(err, "escape special characters, or leave regex out",
                               "regex parse error at character %zu: %s", (size_t)offset, (const char *)words);
    }
    matcher->data = pcre2_match_data_create(1, NULL);
    matcher->limits = pcre2_match_context_create(NULL);
    compile_to_machine_code(matcher);
    pcre2_set_match_limit(matcher->limits, MATCH_LIMIT);
    pcre2_set_depth_limit(matcher->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(matcher->limits, HEAP_LIMIT_KIB);
    return 0;
}

int matcher_compile(enum matcher_kind kind, const char *text, size_t len, struct matcher **ret,
                    struct error *err)
{
    if (len > MAX_PATTERN_BYTES)
        return guest_tool_fail(err, NULL, "query is longer than %d bytes", MAX_PATTERN_BYTES);
    CLEANUP(matcher_free) struct matcher *matcher = mem_alloc(sizeof(*matcher));
    if (kind == MATCHER_LITERAL) {
        matcher->literal = mem_strndup(text, len);
        matcher->literal_len = len;
    } else if (compile_regex(matcher,
                             kind == MATCHER_REGEX ? PCRE2_NEVER_BACKSLASH_C : PCRE2_LITERAL | PCRE2_CASELESS,
                             text, len, err) < 0) {
        return -1;
    }
    *ret = TAKE_PTR(matcher);
    return 0;
}

int matcher_match(struct matcher *matcher, const char *line, size_t len, struct error *err)
{
    if (matcher->literal)
        return memmem(line, len, matcher->literal, matcher->literal_len) != NULL;
    int result = pcre2_match(matcher->code, (PCRE2_SPTR)line, len, 0, PCRE2_NO_UTF_CHECK, matcher->data,
                             matcher->limits);
    if (result >= 0)
        return 1;
    if (result == PCRE2_ERROR_NOMATCH)
        return 0;
    return guest_tool_fail(err, "use a simpler pattern", "the regular expression takes too long");
}

const char *matcher_literal(const struct matcher *matcher, size_t *ret_len)
{
    *ret_len = matcher->literal_len;
    return matcher->literal;
}
