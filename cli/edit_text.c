#include "cli/edit_text.h"
#include "cli/printers/print.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include <string.h>

static const char heading[] = "# Please edit the object below. Lines beginning with a '#' will be ignored,\n"
                              "# and an empty file will abort the edit. If an error occurs while saving this file will be\n"
                              "# reopened with the relevant failures.\n#\n";

char *edit_body(const json_t *objects, bool is_json)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(EDIT_MAX_BYTES);
    CLEANUP_JSON json_t *list = json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", objects);
    const json_t *value = json_array_size(objects) == 1 ? json_array_get(objects, 0) : list;
    if (is_json) {
        CLEANUP_FREE char *json = json_to_pretty_text(value);
        buffer_append_text(&text, json);
        buffer_append_char(&text, '\n');
    } else {
        yaml_write(&text, value);
    }
    return text.is_over ? NULL : buffer_take_string(&text);
}

char *edit_page(const char *faults, const char *body, bool is_json)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(2 * EDIT_MAX_BYTES);
    if (is_json)
        return mem_strdup(body);
    buffer_append_text(&text, heading);
    while (*faults) {
        size_t len = strcspn(faults, "\n");
        buffer_format(&text, "# %.*s\n", (int)len, faults);
        faults += len + (faults[len] == '\n');
        if (!*faults)
            buffer_append_text(&text, "#\n");
    }
    buffer_append_text(&text, body);
    return buffer_take_string(&text);
}

const char *edit_without_heading(const char *text)
{
    while (*text == '#') {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return text;
}

bool edit_is_blank(const char *text)
{
    while (*text) {
        size_t blanks = strspn(text, " \t\r\n");
        text += blanks;
        if (*text && *text != '#')
            return false;
        text += strcspn(text, "\n");
    }
    return true;
}
