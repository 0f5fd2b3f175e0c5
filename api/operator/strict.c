// fieldValidation=Strict in Kubernetes' words: every field that no table has or that stands twice.
#include "api/operator/body.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fields/fields.h"
#include <string.h>

static const char *word_of(const json_t *cause)
{
    const char *reason = json_get_text(cause, "reason");
    if (reason && strcmp(reason, CAUSE_UNKNOWN) == 0)
        return "unknown";
    return reason && strcmp(reason, CAUSE_REPEATED) == 0 ? "duplicate" : NULL;
}

int strict_check(const struct call *call, const json_t *causes, struct error *err)
{
    const char *kind = kind_info(call->match.kind)->name;
    CLEANUP(buffer_free) struct buffer words = BUFFER_INIT(sizeof(err->message) - 256);
    size_t i, count = 0, shown = 0;
    json_t *cause;
    json_array_foreach((json_t *)causes, i, cause)
    {
        const char *word = word_of(cause);
        if (!word)
            continue;
        count++;
        CLEANUP_FREE char *text = mem_format("%s%s field \"%s\"", shown ? ", " : "", word, json_get_text(cause, "field"));
        shown += buffer_append_text(&words, text) == 0;
    }
    if (!count)
        return 0;
    CLEANUP_FREE char *more = count > shown ? mem_format(", and %zu more", count - shown) : mem_strdup("");
    return error_set(err, ERROR_USAGE, "take them out, or send fieldValidation=Warn",
                     "%s in version \"" API_VERSION "\" cannot be handled as a %s: strict decoding error: %s%s", kind, kind,
                     buffer_text(&words), more);
}
