// -o: the forms that are given as text, on the command line or in a file.
#include "cli/get.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <string.h>

#define FORM_MAX_BYTES (64 * 1024)

static int read_jsonpath(struct get *get, const char *text, struct error *err)
{
    get->form = GET_JSONPATH;
    return jsonpath_parse(text, &get->jsonpath, err);
}

static int read_columns(struct get *get, const char *text, struct error *err)
{
    get->form = GET_COLUMNS;
    return custom_columns_parse(text, &get->columns, err);
}

static int read_columns_lines(struct get *get, const char *text, struct error *err)
{
    get->form = GET_COLUMNS;
    return custom_columns_parse_lines(text, &get->columns, err);
}

static const struct {
    const char *word; // as in get_outputs
    int (*read)(struct get *get, const char *text, struct error *err);
    bool is_file;
} forms[] = {
    {"jsonpath=", read_jsonpath, false},
    {"jsonpath-file=", read_jsonpath, true},
    {"custom-columns=", read_columns, false},
    {"custom-columns-file=", read_columns_lines, true},
};

const char *const get_outputs[] = {"table", "wide", "json", "yaml", "name", "jsonpath=", "jsonpath-file=", "custom-columns=", "custom-columns-file=", NULL};

int get_prepare_form(struct get *get, const char *output, struct error *err)
{
    get->is_wide = strcmp(output, "wide") == 0;
    if (get->is_wide || strcmp(output, "table") == 0)
        return 0;
    get->form = GET_OBJECTS;
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        CLEANUP(buffer_free) struct buffer file = BUFFER_INIT(FORM_MAX_BYTES);
        const char *text = output + strlen(forms[i].word);
        if (strncmp(output, forms[i].word, strlen(forms[i].word)) != 0)
            continue;
        if (forms[i].is_file && fs_read_file(text, &file, err) < 0)
            return error_context(err, "--output");
        return forms[i].read(get, forms[i].is_file ? buffer_text(&file) : text, err);
    }
    return 0;
}
