// The walk over libyaml's events. libyaml has no depth limit, is quadratic on nesting, and accepts duplicate
// keys, unknown tags, aliases and NUL: everything is counted on events, and the first wrong one ends the
// parse.
#include "controller/yaml/yaml.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <string.h>
#include <yaml.h>

struct walk {
    yaml_parser_t parser;
    const char *file;
    const char *bytes;
    size_t len;
    size_t nodes;
    struct error *err;
};

static void clear_node(struct yaml_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        clear_node(&node->items[i]);
    free(node->items);
    free(node->key);
}

void yaml_node_free(struct yaml_node *node)
{
    if (!node)
        return;
    clear_node(node);
    free(node);
}

#define FLATTEN "write it flatter or split it into several files"
#define PLAIN_YAML "write the value out: manifests are plain YAML without anchors, aliases and tags"

static int refuse(struct walk *w, const yaml_mark_t *at, enum error_code code, const char *hint,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));
static int refuse(struct walk *w, const yaml_mark_t *at, enum error_code code, const char *hint,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *what = mem_vformat(format, args);
    va_end(args);
    return error_set(w->err, code, hint, "%s:%zu:%zu: %s", w->file, at->line + 1, at->column + 1, what);
}

// ---- what libyaml itself refuses
// ----------------------------------------------------------------------------------
static yaml_mark_t mark_of_offset(const struct walk *w, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < w->len; i++) {
        mark.column = w->bytes[i] == '\n' ? 0 : mark.column + 1;
        mark.line += w->bytes[i] == '\n';
    }
    return mark;
}

static bool is_tab_at(const struct walk *w, const yaml_mark_t *mark)
{
    return mark->index < w->len && w->bytes[mark->index] == '\t';
}

static int refuse_syntax(struct walk *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *problem = p->problem ? p->problem : "not valid YAML";
    if (p->error == YAML_READER_ERROR) {
        yaml_mark_t mark = mark_of_offset(w, p->problem_offset);
        return refuse(w, &mark, ERROR_INVALID, "save the file as UTF-8 text", "%s", problem);
    }
    if (is_tab_at(w, &p->problem_mark))
        return refuse(w, &p->problem_mark, ERROR_INVALID, "indent with blanks",
                      "a tab cannot be used here: YAML does not allow tabs for indentation");
    if (p->context)
        return refuse(w, &p->problem_mark, ERROR_INVALID, NULL, "%s (%s)", problem, p->context);
    return refuse(w, &p->problem_mark, ERROR_INVALID, NULL, "%s", problem);
}

static int next_event(struct walk *w, yaml_event_t *event)
{
    return yaml_parser_parse(&w->parser, event) ? 0 : refuse_syntax(w);
}

// ---- values
// --------------------------------------------------------------------------------------------------------
static const yaml_char_t *anchor_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor;
    default:
        return NULL;
    }
}

static const yaml_char_t *tag_of(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag;
    default:
        return NULL;
    }
}

static int check_node(struct walk *w, const yaml_event_t *event, size_t depth)
{
    const yaml_mark_t *at = &event->start_mark;
    if (event->type == YAML_ALIAS_EVENT)
        return refuse(w, at, ERROR_INVALID, PLAIN_YAML, "the alias '*%.40s' is not allowed",
                      (const char *)event->data.alias.anchor);
    if (anchor_of(event))
        return refuse(w, at, ERROR_INVALID, PLAIN_YAML, "the anchor '&%.40s' is not allowed",
                      (const char *)anchor_of(event));
    if (tag_of(event))
        return refuse(w, at, ERROR_INVALID, PLAIN_YAML, "the tag '%.40s' is not allowed",
                      (const char *)tag_of(event));
    if (depth > YAML_MAX_DEPTH)
        return refuse(w, at, ERROR_TOO_LARGE, FLATTEN, "nested deeper than %d levels", YAML_MAX_DEPTH);
    if (++w->nodes > YAML_MAX_NODES)
        return refuse(w, at, ERROR_TOO_LARGE, FLATTEN, "more than %d values", YAML_MAX_NODES);
    return 0;
}

static int read_scalar(struct walk *w, const yaml_event_t *event, json_t **ret)
{
    const char *text = (const char *)event->data.scalar.value, *wrong = NULL;
    size_t len = event->data.scalar.length;
    if (memchr(text, '\0', len))
        return refuse(w, &event->start_mark, ERROR_INVALID, NULL, "NUL characters are not allowed");
    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        *ret = json_stringn(text, len);
    else if (yaml_resolve_plain(text, ret, &wrong) < 0)
        return refuse(w, &event->start_mark, ERROR_INVALID, NULL, "'%.40s': %s", text, wrong);
    return 0;
}

static struct yaml_node *add_child(struct yaml_node *node)
{
    if ((node->count & (node->count - 1)) == 0) // a power of two is full
        node->items = mem_realloc_array(node->items, node->count ? node->count * 2 : 1, sizeof(*node->items));
    struct yaml_node *child = &node->items[node->count++];
    *child = (struct yaml_node){0};
    return child;
}

static int read_value(struct walk *w, const yaml_event_t *event, size_t depth, struct yaml_node *node,
                      json_t **ret);

static int read_list(struct walk *w, size_t depth, struct yaml_node *node, json_t **ret)
{
    CLEANUP_JSON json_t *list = json_array();
    node->is_list = true;
    for (;;) {
        CLEANUP(yaml_event_delete) yaml_event_t event = {0};
        json_t *item;
        if (next_event(w, &event) < 0)
            return -1;
        if (event.type == YAML_SEQUENCE_END_EVENT)
            break;
        if (read_value(w, &event, depth, add_child(node), &item) < 0)
            return -1;
        json_array_append_new(list, item);
    }
    *ret = TAKE_PTR(list);
    return 0;
}

static size_t line_of_key(const struct yaml_node *node, const char *key)
{
    for (size_t i = 0; i < node->count; i++)
        if (node->items[i].key && strcmp(node->items[i].key, key) == 0)
            return node->items[i].line;
    return node->line;
}

static int check_key(struct walk *w, const yaml_event_t *event, size_t depth, const json_t *object,
                     const struct yaml_node *node)
{
    const char *key = (const char *)event->data.scalar.value;
    if (check_node(w, event, depth) < 0)
        return -1;
    if (event->type != YAML_SCALAR_EVENT)
        return refuse(w, &event->start_mark, ERROR_INVALID, NULL, "a key must be a string");
    if (memchr(key, '\0', event->data.scalar.length))
        return refuse(w, &event->start_mark, ERROR_INVALID, NULL, "NUL characters are not allowed");
    if (!json_object_get(object, key))
        return 0;
    CLEANUP_FREE char *quoted = problems_quote(key);
    return refuse(w, &event->start_mark, ERROR_INVALID, "keep one of the two",
                  "key %s is given twice, first in line %zu", quoted, line_of_key(node, key));
}

static int read_member(struct walk *w, const yaml_event_t *key_event, size_t depth, struct yaml_node *node,
                       json_t *object)
{
    CLEANUP(yaml_event_delete) yaml_event_t event = {0};
    const char *key = (const char *)key_event->data.scalar.value;
    json_t *value;
    if (check_key(w, key_event, depth, object, node) < 0 || next_event(w, &event) < 0)
        return -1;
    struct yaml_node *child = add_child(node);
    child->key = mem_strdup(key);
    child->line = key_event->start_mark.line + 1;
    if (read_value(w, &event, depth, child, &value) < 0)
        return -1;
    json_object_set_new(object, key, value);
    return 0;
}

static int read_mapping(struct walk *w, size_t depth, struct yaml_node *node, json_t **ret)
{
    CLEANUP_JSON json_t *object = json_object();
    for (;;) {
        CLEANUP(yaml_event_delete) yaml_event_t event = {0};
        if (next_event(w, &event) < 0)
            return -1;
        if (event.type == YAML_MAPPING_END_EVENT)
            break;
        if (read_member(w, &event, depth, node, object) < 0)
            return -1;
    }
    *ret = TAKE_PTR(object);
    return 0;
}

static int read_value(struct walk *w, const yaml_event_t *event, size_t depth, struct yaml_node *node,
                      json_t **ret)
{
    if (!node->line)
        node->line = event->start_mark.line + 1;
    bool is_inner = event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
    if (check_node(w, event, depth + is_inner) < 0)
        return -1;
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return read_list(w, depth + 1, node, ret);
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_mapping(w, depth + 1, node, ret);
    return read_scalar(w, event, ret);
}

// ---- documents
// -----------------------------------------------------------------------------------------------------
static int read_document(struct walk *w, const yaml_event_t *start, yaml_document_fn *fn, void *arg)
{
    CLEANUP(yaml_event_delete) yaml_event_t event = {0};
    if (start->data.document_start.tag_directives.start != start->data.document_start.tag_directives.end)
        return refuse(w, &start->start_mark, ERROR_INVALID, PLAIN_YAML, "the directive %%TAG is not allowed");
    if (next_event(w, &event) < 0)
        return -1;
    struct yaml_node *root = mem_alloc(sizeof(*root));
    json_t *value;
    if (read_value(w, &event, 0, root, &value) < 0) {
        yaml_node_free(root);
        return -1;
    }
    fn(arg, value, root);
    return 0;
}

static int read_stream(struct walk *w, yaml_document_fn *fn, void *arg)
{
    for (;;) {
        CLEANUP(yaml_event_delete) yaml_event_t event = {0};
        if (next_event(w, &event) < 0)
            return -1;
        if (event.type == YAML_STREAM_END_EVENT)
            return 0;
        if (event.type == YAML_DOCUMENT_START_EVENT && read_document(w, &event, fn, arg) < 0)
            return -1;
    }
}

int yaml_parse(const char *file, const char *bytes, size_t len, yaml_document_fn *fn, void *arg,
               struct error *err)
{
    struct walk w = {.file = file, .bytes = bytes, .len = len, .err = err};
    if (!yaml_parser_initialize(&w.parser))
        return error_set(err, ERROR_INTERNAL, NULL, "the YAML parser cannot be started");
    yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)bytes, len);
    int r = read_stream(&w, fn, arg);
    yaml_parser_delete(&w.parser);
    return r;
}
