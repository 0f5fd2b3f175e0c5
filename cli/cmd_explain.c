// explain: what the fields of a kind are for, from the daemon's own OpenAPI document, by which it checks objects too.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/targets.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include "controller/fields/problems.h"
#include <stdio.h>
#include <string.h>

#define EXPLAIN_MAX_BYTES (1024 * 1024)
#define EXPLAIN_MAX_DEPTH 16 // of references, of the path, and of --recursive
#define EXPLAIN_MAX_FIELDS 256
#define REF_PREFIX "#/components/schemas/"

struct explained {
    const json_t *schemas; // components.schemas
    const struct kind_info *info;
    struct buffer out;
};

// ---- the document -------------------------------------------------------------------------------------------------------
static int fetch_schemas(const struct rest *rest, const struct kind_info *info, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *document = NULL;
    const char *path = info == &events_info ? "/openapi/v3/api/v1" : "/openapi/v3/apis/" API_GROUP "/" API_VERSION;
    if (rest_get(rest, path, &document, err) < 0)
        return -1;
    *ret = json_incref(json_object_get(json_object_get(document, "components"), "schemas"));
    return *ret ? 0 : error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's OpenAPI document has no schemas");
}

static const json_t *find_kind_schema(const struct explained *explained)
{
    const char *name;
    json_t *schema, *each;
    size_t i;
    json_object_foreach((json_t *)explained->schemas, name, schema)
        json_array_foreach(json_object_get(schema, "x-kubernetes-group-version-kind"), i, each)
            if (json_get_text(each, "kind") && strcmp(json_get_text(each, "kind"), explained->info->name) == 0)
                return schema;
    return NULL;
}

// "$ref" itself, or the one of "allOf"; NULL if it is none.
static const char *reference_of(const json_t *schema)
{
    const char *direct = json_get_text(schema, "$ref");
    return direct ? direct : json_get_text(json_array_get(json_object_get(schema, "allOf"), 0), "$ref");
}

static const json_t *resolve(const struct explained *explained, const json_t *schema)
{
    const char *reference;
    for (int i = 0; i < EXPLAIN_MAX_DEPTH && (reference = reference_of(schema)) != NULL; i++)
        schema = strncmp(reference, REF_PREFIX, strlen(REF_PREFIX)) == 0 ? json_object_get(explained->schemas, reference + strlen(REF_PREFIX)) : NULL;
    return schema;
}

// What has the properties: the schema, or its items'.
static const json_t *with_fields(const struct explained *explained, const json_t *schema)
{
    schema = resolve(explained, schema);
    for (int i = 0; i < EXPLAIN_MAX_DEPTH && json_object_get(schema, "items"); i++)
        schema = resolve(explained, json_object_get(schema, "items"));
    return schema;
}

// ---- words --------------------------------------------------------------------------------------------------------------
static char *word_type(const struct explained *explained, const json_t *schema, int depth)
{
    const json_t *whole = resolve(explained, schema), *items = json_object_get(whole, "items"), *values = json_object_get(whole, "additionalProperties");
    const char *type = json_get_text(whole, "type"), *format = json_get_text(whole, "format");
    if ((json_is_object(items) || json_is_object(values)) && depth < EXPLAIN_MAX_DEPTH) {
        CLEANUP_FREE char *inner = word_type(explained, items ? items : values, depth + 1);
        return mem_format("%s%s", items ? "[]" : "map[string]", inner);
    }
    if (json_object_get(whole, "x-kubernetes-int-or-string"))
        return mem_strdup("number or string");
    return mem_strdup(format && strcmp(format, "date-time") == 0 ? "time" : type ? type : "any");
}

static bool is_required(const json_t *owner, const char *name)
{
    size_t i;
    json_t *each;
    json_array_foreach(json_object_get(owner, "required"), i, each)
        if (json_is_string(each) && strcmp(json_string_value(each), name) == 0)
            return true;
    return false;
}

static const char *description_of(const struct explained *explained, const json_t *schema)
{
    const char *own = json_get_text(schema, "description"), *whole = json_get_text(resolve(explained, schema), "description");
    return own ? own : whole ? whole : "";
}

// "One of: a, b." and "Default: x."
static void put_limits(struct explained *explained, const json_t *schema, const char *indent)
{
    const json_t *value = json_object_get(schema, "default");
    CLEANUP_FREE char *opening = mem_format("%sOne of: ", indent);
    size_t i, count = 0;
    json_t *word;
    json_array_foreach(json_object_get(schema, "enum"), i, word)
        if (json_string_length(word)) // an empty one stands for the default
            buffer_format(&explained->out, "%s%s", count++ ? ", " : opening, json_string_value(word));
    if (count)
        buffer_append_text(&explained->out, ".\n");
    if (value) {
        CLEANUP_FREE char *text = json_is_string(value) ? mem_strdup(json_string_value(value)) : json_to_text(value);
        buffer_format(&explained->out, "%sDefault: %s.\n", indent, text);
    }
}

static void put_name(struct explained *explained, const json_t *owner, const char *name, const json_t *schema, int depth)
{
    CLEANUP_FREE char *type = word_type(explained, schema, 0);
    buffer_format(&explained->out, "%*s%s <%s>%s\n", 2 + 2 * depth, "", name, type, is_required(owner, name) ? " -required-" : "");
}

static void put_fields(struct explained *explained, const json_t *owner)
{
    const char *name;
    json_t *schema;
    json_object_foreach(json_object_get(owner, "properties"), name, schema)
    {
        put_name(explained, owner, name, schema, 0);
        buffer_format(&explained->out, "    %s\n", description_of(explained, schema));
        put_limits(explained, schema, "    ");
        buffer_append_char(&explained->out, '\n');
    }
}

static void put_tree(struct explained *explained, const json_t *owner, int depth)
{
    const char *name;
    json_t *schema;
    json_object_foreach(json_object_get(owner, "properties"), name, schema)
    {
        put_name(explained, owner, name, schema, depth);
        if (depth < EXPLAIN_MAX_DEPTH && !explained->out.is_over)
            put_tree(explained, with_fields(explained, schema), depth + 1);
    }
}

// ---- the path -----------------------------------------------------------------------------------------------------------
static int refuse_field(const json_t *owner, const char *field, const char *path, struct error *err)
{
    const char *names[EXPLAIN_MAX_FIELDS], *name;
    json_t *ignored;
    size_t count = 0;
    json_object_foreach(json_object_get(owner, "properties"), name, ignored)
        if (count < EXPLAIN_MAX_FIELDS)
            names[count++] = name;
    const char *nearest = problems_nearest(field, names, count);
    CLEANUP_FREE char *quoted = problems_quote(field);
    error_set(err, ERROR_USAGE, count ? "chat2shell explain KIND --recursive" : "it has no fields", "there is no field %s in %.200s", quoted, path);
    return nearest ? error_hint(err, "did you mean `%s`?", nearest) : -1;
}

// fields: "spec.memory" or "". *schema moves down to it.
static int walk(const struct explained *explained, const char *fields, const json_t **schema, struct error *err)
{
    while (*fields) {
        size_t len = strcspn(fields, ".");
        CLEANUP_FREE char *field = mem_strndup(fields, len);
        const json_t *owner = with_fields(explained, *schema), *next = json_object_get(json_object_get(owner, "properties"), field);
        if (!next)
            return refuse_field(owner, field, explained->info->name, err);
        *schema = next;
        fields += len + (fields[len] == '.');
    }
    return 0;
}

static void put_all(struct explained *explained, const char *fields, const json_t *schema, bool is_recursive)
{
    const json_t *owner = with_fields(explained, schema);
    CLEANUP_FREE char *type = word_type(explained, schema, 0);
    buffer_format(&explained->out, "KIND:     %s\nVERSION:  %s\n\n", explained->info->name, explained->info == &events_info ? "v1" : API_GROUP "/" API_VERSION);
    if (*fields)
        buffer_format(&explained->out, "FIELD:    %s <%s>\n\n", fields, type);
    buffer_format(&explained->out, "DESCRIPTION:\n    %s\n", description_of(explained, schema));
    put_limits(explained, schema, "    ");
    if (!json_object_size(json_object_get(owner, "properties")))
        return;
    buffer_append_text(&explained->out, "\nFIELDS:\n");
    if (is_recursive)
        put_tree(explained, owner, 0);
    else
        put_fields(explained, owner);
}

static int run(struct invocation *in, struct error *err)
{
    const char *word = in->arguments[0], *dot = strchr(word, '.'), *fields = dot ? dot + 1 : "";
    CLEANUP_FREE char *kind = mem_strndup(word, dot ? (size_t)(dot - word) : strlen(word));
    struct explained explained = {.info = target_kind(kind, err), .out = BUFFER_INIT(EXPLAIN_MAX_BYTES)};
    const struct rest *rest = explained.info ? invocation_rest(in, err) : NULL;
    CLEANUP_JSON json_t *schemas = NULL;
    if (!rest || fetch_schemas(rest, explained.info, &schemas, err) < 0)
        return -1;
    explained.schemas = schemas;
    const json_t *schema = find_kind_schema(&explained);
    if (!schema)
        return error_set(err, ERROR_INTERNAL, "is the daemon of another version?", "the daemon's OpenAPI document does not have %s", explained.info->name);
    if (walk(&explained, fields, &schema, err) < 0)
        return -1;
    put_all(&explained, fields, schema, invocation_switch(in, "recursive", false));
    print_text(buffer_text(&explained.out));
    buffer_free(&explained.out);
    return 0;
}

static const struct example examples[] = {
    {"chat2shell explain sandbox", "what a sandbox consists of"},
    {"chat2shell explain sandbox.spec.memory", "one field: its type, what it is for, its default"},
    {"chat2shell explain workspace --recursive", "the names of all fields"},
};
static const struct option_row options[] = {{.name = "recursive", .doc = "the fields of fields too, names and types only"}};
const struct command command_explain = {
    .name = "explain", .synopsis = "KIND[.FIELD…]", .summary = "Say what the fields of a kind are for", .min_arguments = 1, .max_arguments = 1, .run = run,
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
