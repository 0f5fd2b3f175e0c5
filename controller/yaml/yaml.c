// The walk over libyaml's events. libyaml has no depth limit, is quadratic on nesting, and accepts duplicate
// keys, unknown tags and NUL: everything is counted on events, and the first wrong one ends the parse.
#include "controller/yaml/yaml_internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <string.h>
#include <yaml.h>

void yaml_node_clear(struct yaml_node *node)
{
    for (size_t i = 0; i < node->count; i++)
        yaml_node_clear(&node->items[i]);
    free(node->items);
    free(node->key);
}

void yaml_node_free(struct yaml_node *node)
{
    if (!node)
        return;
    yaml_node_clear(node);
    free(node);
}

#define CORE_TAGS "leave the tag out; known are !!str, !!int, !!float, !!bool, !!null, !!seq and !!map"

int yaml_refuse(struct yaml_walk *w, const yaml_mark_t *at, enum error_code code, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *what = mem_vformat(format, args);
    va_end(args);
    return error_set(w->err, code, hint, "%s:%zu:%zu: %s", w->file, at->line + 1, at->column + 1, what);
}

int yaml_count_nodes(struct yaml_walk *w, const yaml_mark_t *at, size_t count)
{
    w->nodes += count;
    if (w->nodes > w->max_nodes)
        return yaml_refuse(w, at, ERROR_TOO_LARGE, YAML_HINT_FLATTER, "more than %zu values, what aliases stand for included", w->max_nodes);
    return 0;
}

// ---- what libyaml itself refuses
// ----------------------------------------------------------------------------------
static bool begins_character(char byte)
{
    return (byte & 0xC0) != 0x80;
}

static yaml_mark_t mark_of_offset(const struct yaml_walk *w, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < w->len; i++) {
        mark.column = w->bytes[i] == '\n' ? 0 : mark.column + begins_character(w->bytes[i]);
        mark.line += w->bytes[i] == '\n';
    }
    return mark;
}

// libyaml counts characters, not bytes.
static bool is_tab_at(const struct yaml_walk *w, const yaml_mark_t *mark)
{
    size_t characters = 0, i = 0;
    for (; i < w->len; i++)
        if (begins_character(w->bytes[i]) && characters++ == mark->index)
            break;
    return i < w->len && w->bytes[i] == '\t';
}

static int refuse_syntax(struct yaml_walk *w)
{
    const yaml_parser_t *p = &w->parser;
    const char *problem = p->problem ? p->problem : "not valid YAML";
    if (p->error == YAML_READER_ERROR) {
        yaml_mark_t mark = mark_of_offset(w, p->problem_offset);
        return yaml_refuse(w, &mark, ERROR_INVALID, "save the file as UTF-8 text", "%s", problem);
    }
    if (is_tab_at(w, &p->problem_mark))
        return yaml_refuse(w, &p->problem_mark, ERROR_INVALID, "indent with blanks",
                           "a tab cannot be used here: YAML does not allow tabs for indentation");
    if (p->context)
        return yaml_refuse(w, &p->problem_mark, ERROR_INVALID, NULL, "%s (%s)", problem, p->context);
    return yaml_refuse(w, &p->problem_mark, ERROR_INVALID, NULL, "%s", problem);
}

static int next_event(struct yaml_walk *w, yaml_event_t *event)
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

static int check_node(struct yaml_walk *w, const yaml_event_t *event, size_t depth)
{
    const yaml_mark_t *at = &event->start_mark;
    bool is_list = event->type == YAML_SEQUENCE_START_EVENT, is_scalar = event->type == YAML_SCALAR_EVENT;
    const char *tag = (const char *)tag_of(event);
    if (!is_scalar && !yaml_is_tag_of(tag, is_list))
        return yaml_refuse(w, at, ERROR_INVALID, CORE_TAGS, "the tag '%.40s' is not allowed%s", tag, is_list ? " for a list" : " for a mapping");
    if (depth > YAML_MAX_DEPTH)
        return yaml_refuse(w, at, ERROR_TOO_LARGE, YAML_HINT_FLATTER, "nested deeper than %d levels", YAML_MAX_DEPTH);
    return yaml_count_nodes(w, at, 1);
}

static int read_scalar(struct yaml_walk *w, const yaml_event_t *event, json_t **ret)
{
    const char *text = (const char *)event->data.scalar.value, *wrong = NULL;
    size_t len = event->data.scalar.length;
    bool is_plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (memchr(text, '\0', len))
        return yaml_refuse(w, &event->start_mark, ERROR_INVALID, NULL, "NUL characters are not allowed");
    if (yaml_resolve_scalar(text, len, is_plain, (const char *)event->data.scalar.tag, ret, &wrong) < 0)
        return yaml_refuse(w, &event->start_mark, ERROR_INVALID, event->data.scalar.tag ? CORE_TAGS : NULL, "'%.40s': %s", text, wrong);
    return 0;
}

static void put_place(struct yaml_node *node, const yaml_event_t *event)
{
    node->line = event->start_mark.line + 1;
    node->column = event->start_mark.column + 1;
}

static struct yaml_node *add_child(struct yaml_node *node)
{
    if ((node->count & (node->count - 1)) == 0) // a power of two is full
        node->items = mem_realloc_array(node->items, node->count ? node->count * 2 : 1, sizeof(*node->items));
    struct yaml_node *child = &node->items[node->count++];
    *child = (struct yaml_node){0};
    return child;
}

static int read_value(struct yaml_walk *w, const yaml_event_t *event, size_t depth, struct yaml_node *node,
                      json_t **ret);

static int read_list(struct yaml_walk *w, size_t depth, struct yaml_node *node, json_t **ret)
{
    CLEANUP_JSON json_t *list = json_array();
    node->is_list = true;
    for (;;) {
        CLEANUP(yaml_event_delete) yaml_event_t event = {0};
        json_t *item = NULL;
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

static bool is_merge_key(const yaml_event_t *event)
{
    return event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp((const char *)event->data.scalar.value, "<<") == 0;
}

static int check_key_form(struct yaml_walk *w, const yaml_event_t *event)
{
    const yaml_mark_t *at = &event->start_mark;
    if (event->type != YAML_SCALAR_EVENT)
        return yaml_refuse(w, at, ERROR_INVALID, NULL, "a key must be a string%s", event->type == YAML_ALIAS_EVENT ? ", not an alias" : "");
    if (anchor_of(event) || tag_of(event))
        return yaml_refuse(w, at, ERROR_INVALID, "put it in front of the value", "a key can have neither an anchor nor a tag");
    if (is_merge_key(event))
        return yaml_refuse(w, at, ERROR_INVALID, "write the members out, or put \"<<\" in quotes if it is the key's name", "merge keys (<<) are not allowed");
    if (memchr(event->data.scalar.value, '\0', event->data.scalar.length))
        return yaml_refuse(w, at, ERROR_INVALID, NULL, "NUL characters are not allowed");
    return yaml_count_nodes(w, at, 1);
}

static int check_key(struct yaml_walk *w, const yaml_event_t *event, const json_t *object, const struct yaml_node *node)
{
    const char *key = (const char *)event->data.scalar.value;
    if (check_key_form(w, event) < 0)
        return -1;
    if (!json_object_get(object, key))
        return 0;
    CLEANUP_FREE char *quoted = problems_quote(key);
    return yaml_refuse(w, &event->start_mark, ERROR_INVALID, "keep one of the two",
                       "key %s is given twice, first in line %zu", quoted, line_of_key(node, key));
}

static int read_member(struct yaml_walk *w, const yaml_event_t *key_event, size_t depth, struct yaml_node *node,
                       json_t *object)
{
    CLEANUP(yaml_event_delete) yaml_event_t event = {0};
    const char *key = (const char *)key_event->data.scalar.value;
    json_t *value;
    if (check_key(w, key_event, object, node) < 0 || next_event(w, &event) < 0)
        return -1;
    struct yaml_node *child = add_child(node);
    child->key = mem_strdup(key);
    put_place(child, key_event);
    if (read_value(w, &event, depth, child, &value) < 0)
        return -1;
    json_object_set_new(object, key, value);
    return 0;
}

static int read_mapping(struct yaml_walk *w, size_t depth, struct yaml_node *node, json_t **ret)
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

static int read_marked(struct yaml_walk *w, const yaml_event_t *event, size_t depth, struct yaml_node *node, json_t **ret)
{
    if (event->type == YAML_SEQUENCE_START_EVENT)
        return read_list(w, depth + 1, node, ret);
    if (event->type == YAML_MAPPING_START_EVENT)
        return read_mapping(w, depth + 1, node, ret);
    return read_scalar(w, event, ret);
}

static int read_value(struct yaml_walk *w, const yaml_event_t *event, size_t depth, struct yaml_node *node,
                      json_t **ret)
{
    const char *anchor = (const char *)anchor_of(event);
    CLEANUP_JSON json_t *value = NULL;
    if (!node->line)
        put_place(node, event);
    if (event->type == YAML_ALIAS_EVENT)
        return yaml_anchor_take(w, &event->start_mark, (const char *)event->data.alias.anchor, depth, node, ret);
    bool is_inner = event->type == YAML_SEQUENCE_START_EVENT || event->type == YAML_MAPPING_START_EVENT;
    if (check_node(w, event, depth + is_inner) < 0 || read_marked(w, event, depth, node, &value) < 0)
        return -1;
    if (anchor && yaml_anchor_keep(w, &event->start_mark, anchor, value, node) < 0)
        return -1;
    *ret = TAKE_PTR(value);
    return 0;
}

// ---- documents
// -----------------------------------------------------------------------------------------------------
static int read_document(struct yaml_walk *w, const yaml_event_t *start, yaml_document_fn *fn, void *arg)
{
    CLEANUP(yaml_event_delete) yaml_event_t event = {0};
    if (start->data.document_start.tag_directives.start != start->data.document_start.tag_directives.end)
        return yaml_refuse(w, &start->start_mark, ERROR_INVALID, CORE_TAGS, "the directive %%TAG is not allowed");
    if (next_event(w, &event) < 0)
        return -1;
    struct yaml_node *root = mem_alloc(sizeof(*root));
    json_t *value = NULL;
    int r = read_value(w, &event, 0, root, &value);
    yaml_anchors_clear(&w->anchors);
    if (r < 0) {
        yaml_node_free(root);
        return -1;
    }
    fn(arg, value, root);
    return 0;
}

static int read_stream(struct yaml_walk *w, yaml_document_fn *fn, void *arg)
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

// ---- the stream's encoding
// ----------------------------------------------------------------------------------------
static const struct {
    const char *bytes;
    size_t len;
    const char *name;
} foreign_marks[] = {{"\xFF\xFE\0\0", 4, "UTF-32"}, {"\0\0\xFE\xFF", 4, "UTF-32"}, {"\xFF\xFE", 2, "UTF-16"}, {"\xFE\xFF", 2, "UTF-16"}};

static int skip_mark(struct yaml_walk *w)
{
    for (size_t i = 0; i < ARRAY_LEN(foreign_marks); i++)
        if (w->len >= foreign_marks[i].len && memcmp(w->bytes, foreign_marks[i].bytes, foreign_marks[i].len) == 0)
            return yaml_refuse(w, &(yaml_mark_t){0}, ERROR_INVALID, "save the file as UTF-8 text", "this is %s text, and only UTF-8 is read",
                               foreign_marks[i].name);
    if (w->len >= 3 && memcmp(w->bytes, "\xEF\xBB\xBF", 3) == 0) {
        w->bytes += 3;
        w->len -= 3;
    }
    return 0;
}

int yaml_parse_bounded(const char *file, const char *bytes, size_t len, size_t max_nodes, yaml_document_fn *fn, void *arg,
                       struct error *err)
{
    struct yaml_walk w = {.file = file, .bytes = bytes, .len = len, .max_nodes = max_nodes, .err = err};
    if (skip_mark(&w) < 0)
        return -1;
    if (!yaml_parser_initialize(&w.parser))
        return error_set(err, ERROR_INTERNAL, NULL, "the YAML parser cannot be started");
    yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)w.bytes, w.len);
    int r = read_stream(&w, fn, arg);
    yaml_parser_delete(&w.parser);
    return r;
}

int yaml_parse(const char *file, const char *bytes, size_t len, yaml_document_fn *fn, void *arg,
               struct error *err)
{
    return yaml_parse_bounded(file, bytes, len, YAML_MAX_NODES, fn, arg, err);
}
