// Warning headers as RFC 7234 has them: CODE AGENT "TEXT", and more behind a comma. Kubernetes' servers send 299 - "TEXT".
#include "api/client/rest.h"
#include "controller/base/memory.h"
#include <string.h>

// A quoted string, from its first quote; the caller owns *ret. NULL: it does not end. Else where it ends.
static const char *read_quoted(const char *at, char **ret)
{
    char *text = mem_alloc(strlen(at) + 1);
    size_t len = 0;
    for (at++; *at && *at != '"'; at++) {
        if (*at == '\\' && at[1])
            at++;
        text[len++] = *at;
    }
    text[len] = '\0';
    if (*at != '"') {
        free(text);
        return NULL;
    }
    *ret = text;
    return at + 1;
}

void rest_read_warnings(const char *header, void (*warn)(const char *text))
{
    const char *at = header;
    while (at && *at) {
        bool is_ours = strncmp(at, "299 ", 4) == 0;
        const char *quote = strchr(at, '"');
        CLEANUP_FREE char *text = NULL, *date = NULL;
        if (!quote || !(at = read_quoted(quote, &text)))
            return;
        if (is_ours && *text)
            warn(text);
        if (strncmp(at, " \"", 2) == 0 && !(at = read_quoted(at + 1, &date))) // which may follow, and says nothing here
            return;
        at += strspn(at, ", ");
    }
}
