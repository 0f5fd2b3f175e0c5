// Warnings beside an answer, as RFC 7234 has them and Kubernetes' clients print them.
#include "api/operator/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdarg.h>
#include <string.h>

#define WARNINGS_MAX 20
#define WARNING_MAX_BYTES 256

void operator_warn(struct call *call, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *message = mem_vformat(format, args);
    va_end(args);
    size_t len = strlen(message);
    CLEANUP_FREE char *text =
        utf8_to_printable(message, len > WARNING_MAX_BYTES ? utf8_cut(message, WARNING_MAX_BYTES) : len, false);
    if (!call->warnings)
        call->warnings = json_array();
    if (json_array_size(call->warnings) >= WARNINGS_MAX)
        return;
    for (size_t i = 0; i < json_array_size(call->warnings); i++)
        if (strcmp(json_string_value(json_array_get(call->warnings, i)), text) == 0)
            return;
    json_array_append_new(call->warnings, json_from_text(text));
}

// A quoted string of a header: printable ASCII only.
static void put_quoted(struct buffer *to, const char *text)
{
    buffer_append_text(to, "299 - \"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buffer_append_text(to, "\\");
        char c = *text >= 0x20 && *text < 0x7f ? *text : '?';
        buffer_append(to, &c, 1);
    }
    buffer_append_text(to, "\"");
}

char *warnings_to_header(const struct call *call)
{
    if (!json_array_size(call->warnings))
        return NULL;
    struct buffer header = BUFFER_INIT(WARNINGS_MAX * (2 * 4 * WARNING_MAX_BYTES + 16));
    for (size_t i = 0; i < json_array_size(call->warnings); i++) {
        buffer_append_text(&header, i ? ", " : "");
        put_quoted(&header, json_string_value(json_array_get(call->warnings, i)));
    }
    return buffer_take_string(&header);
}
