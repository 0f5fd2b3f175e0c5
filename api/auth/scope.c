#include "api/auth/caller.h"
#include "controller/base/cleanup.h"
#include <stdio.h>
#include <string.h>

static const struct {
    enum auth_scope scope;
    const char *word;
} scopes_table[] = {
    {SCOPE_TOOLS_READ, "tools:read"},
    {SCOPE_TOOLS_WRITE, "tools:write"},
    {SCOPE_SANDBOXES_MANAGE, "sandboxes:manage"},
};

const char *auth_scope_word(enum auth_scope scope)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes_table); i++)
        if (scopes_table[i].scope == scope)
            return scopes_table[i].word;
    return "";
}

void auth_scopes_format(unsigned scopes, char text[AUTH_SCOPES_TEXT_SIZE])
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(scopes_table); i++)
        if (scopes & scopes_table[i].scope)
            len += (size_t)snprintf(text + len, AUTH_SCOPES_TEXT_SIZE - len, "%s%s", len ? " " : "", scopes_table[i].word);
}

static unsigned find_word(const char *word, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(scopes_table); i++)
        if (strlen(scopes_table[i].word) == len && memcmp(scopes_table[i].word, word, len) == 0)
            return scopes_table[i].scope;
    return SCOPE_NONE;
}

unsigned auth_scopes_parse(const char *text, size_t len, size_t *ret_unknown)
{
    unsigned scopes = SCOPE_NONE;
    size_t unknown = 0;
    for (size_t at = 0; at < len;) {
        const char *blank = memchr(text + at, ' ', len - at);
        size_t word_len = blank ? (size_t)(blank - text) - at : len - at;
        unsigned scope = find_word(text + at, word_len);
        unknown += word_len && !scope;
        scopes |= scope;
        at += word_len + 1;
    }
    if (ret_unknown)
        *ret_unknown = unknown;
    return scopes;
}
