// A list's position as clients carry it: opaque to them, checked whole when it comes back.
#include "api/operator/collection.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INSTANCE_SHOWN 12 // characters of the store's name that tell stores apart

void list_token_write(const struct list_token *token, const char *instance, char text[TOKEN_SIZE])
{
    snprintf(text, TOKEN_SIZE, "c1.%" PRId64 ".%" PRId64 ".%.*s", token->revision, token->after,
             INSTANCE_SHOWN, instance);
}

static bool take_number(const char **at, int64_t *ret)
{
    char *end;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *ret = strtoll(*at, &end, 10);
    if (errno || *end != '.')
        return false;
    *at = end + 1;
    return true;
}

int list_token_read(const char *text, const char *instance, struct list_token *ret, struct error *err)
{
    struct list_token token;
    const char *at = text + 3;
    if (strncmp(text, "c1.", 3) != 0 || !take_number(&at, &token.revision) || !take_number(&at, &token.after))
        return error_set(err, ERROR_USAGE, "list again without it",
                         "continue: '%.64s' is no token of this server", text);
    if (strlen(at) != INSTANCE_SHOWN || strncmp(at, instance, INSTANCE_SHOWN) != 0)
        return error_set(err, ERROR_EXPIRED, "list again without it",
                         "the continue token is of another store");
    *ret = token;
    return 0;
}
