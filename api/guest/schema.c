// Argument tables as JSON Schema and as checks; field tables as JSON Schema.
#include "api/guest/tool.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <math.h>
#include <string.h>

#define SHA256_PATTERN "^[a-fA-F0-9]{64}$"
#define MAX_PROBLEM_BYTES 8192

static json_t *args_schema(const struct tool_arg *args);

static json_t *choices_schema(const char *const *choices)
{
    json_t *list = json_array();
    for (size_t i = 0; choices[i]; i++)
        json_array_append_new(list, json_string(choices[i]));
    return list;
}

static void add_string_rules(json_t *schema, const struct tool_arg *arg)
{
    if (arg->choices)
        json_object_set_new(schema, "enum", choices_schema(arg->choices));
    if (arg->is_sha256)
        json_object_set_new(schema, "pattern", json_string(SHA256_PATTERN));
    if (arg->is_not_empty)
        json_object_set_new(schema, "minLength", json_integer(1));
    if (arg->default_text)
        json_object_set_new(schema, "default", json_string(arg->default_text));
}

static void add_integer_rules(json_t *schema, const struct tool_arg *arg)
{
    json_object_set_new(schema, "minimum", json_integer(arg->min));
    if (arg->max)
        json_object_set_new(schema, "maximum", json_integer(arg->max));
    if (arg->has_default)
        json_object_set_new(schema, "default", json_integer(arg->default_number));
}

static json_t *arg_schema(const struct tool_arg *arg)
{
    static const char *const type_names[] = {"string", "integer", "boolean", "array", "object"};
    json_t *schema = arg->type == ARG_OBJECT ? args_schema(arg->fields) : json_object();
    json_object_set_new(schema, "type", json_string(type_names[arg->type]));
    json_object_set_new(schema, "description", json_string(arg->doc));
    if (arg->type == ARG_STRING)
        add_string_rules(schema, arg);
    else if (arg->type == ARG_INTEGER)
        add_integer_rules(schema, arg);
    else if (arg->type == ARG_BOOLEAN && arg->has_default)
        json_object_set_new(schema, "default", json_boolean(arg->default_number));
    else if (arg->type == ARG_STRING_LIST)
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    return schema;
}

static json_t *args_schema(const struct tool_arg *args)
{
    json_t *schema = json_object(), *properties = json_object(), *required = json_array();
    for (; args && args->name; args++) {
        json_object_set_new(properties, args->name, arg_schema(args));
        if (args->is_required)
            json_array_append_new(required, json_string(args->name));
    }
    json_object_set_new(schema, "type", json_string("object"));
    json_object_set_new(schema, "properties", properties);
    if (json_array_size(required))
        json_object_set(schema, "required", required);
    json_decref(required);
    json_object_set_new(schema, "additionalProperties", json_false());
    return schema;
}

static json_t *fields_schema(const struct tool_field *const *tables);

static json_t *field_schema(const struct tool_field *field)
{
    static const char *const type_names[] = {"string", "integer", "number", "boolean",
                                             "array",  "object",  "array"};
    json_t *schema = json_object();
    const struct tool_field *const nested[] = {field->fields, NULL};
    if (field->type == FIELD_ANY)
        return schema;
    if (field->type == FIELD_OBJECT) {
        json_decref(schema);
        schema = fields_schema(nested);
    } else if (field->type == FIELD_STRINGS) {
        json_object_set_new(schema, "items", json_pack("{s:s}", "type", "string"));
    } else if (field->type == FIELD_OBJECTS) {
        json_object_set_new(schema, "items", fields_schema(nested));
    }
    const char *name = type_names[field->type];
    json_object_set_new(schema, "type",
                        field->is_nullable ? json_pack("[ss]", name, "null") : json_string(name));
    return schema;
}

static json_t *fields_schema(const struct tool_field *const *tables)
{
    json_t *schema = json_object(), *properties = json_object(), *required = json_array();
    for (size_t i = 0; tables[i]; i++) {
        for (const struct tool_field *field = tables[i]; field->name; field++) {
            json_object_set_new(properties, field->name, field_schema(field));
            if (!field->is_optional)
                json_array_append_new(required, json_string(field->name));
        }
    }
    json_object_set_new(schema, "type", json_string("object"));
    json_object_set_new(schema, "properties", properties);
    json_object_set_new(schema, "required", required);
    return schema;
}

static json_t *output_schema(const struct tool *tool)
{
    static const struct tool_field common[] = {
        {"codexpro_tool", FIELD_STRING}, {"codexpro_title", FIELD_STRING}, {NULL}};
    static const struct tool_field place[] = {{"workspace_id", FIELD_STRING}, {"root", FIELD_STRING}, {NULL}};
    const struct tool_field *tables[4] = {common, tool->fields};
    if (!tool->has_no_workspace)
        tables[2] = place;
    return fields_schema(tables);
}

json_t *guest_tool_describe(const struct tool *tool)
{
    json_t *hints =
        json_pack("{s:s s:b s:b s:b s:b}", "title", tool->title, "readOnlyHint", tool->hints.is_read_only,
                  "destructiveHint", tool->hints.is_destructive, "idempotentHint", tool->hints.is_idempotent,
                  "openWorldHint", tool->hints.is_open_world);
    json_t *described = json_pack("{s:s s:s s:s s:o s:o s:o}", "name", tool->name, "title", tool->title,
                                  "description", tool->description, "inputSchema", args_schema(tool->args),
                                  "outputSchema", output_schema(tool), "annotations", hints);
    if (tool->file_arg)
        json_object_set_new(described, "_meta", json_pack("{s:[s]}", "openai/fileParams", tool->file_arg));
    return described;
}

// One issue: "MESSAGE at PATH" on a line of its own.
static void add_problem(struct buffer *problems, const char *prefix, const char *name, const char *message)
{
    buffer_format(problems, "%s%s at %s%s", problems->len ? "\n" : "", message, prefix, name);
}

static bool is_hex64(const char *text, size_t len)
{
    return len == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}

static bool is_choice(const char *const *choices, const char *text)
{
    for (size_t i = 0; choices[i]; i++)
        if (strcmp(choices[i], text) == 0)
            return true;
    return false;
}

static void check_string(const struct tool_arg *arg, const json_t *value, const char *prefix,
                         struct buffer *problems)
{
    if (!json_is_string(value))
        add_problem(problems, prefix, arg->name, "Expected a string");
    else if (arg->is_sha256 && !is_hex64(json_string_value(value), json_string_length(value)))
        add_problem(problems, prefix, arg->name, "Expected 64 hexadecimal digits");
    else if (arg->choices && !is_choice(arg->choices, json_string_value(value)))
        add_problem(problems, prefix, arg->name, "Not one of the permitted words");
    else if (arg->is_not_empty && json_string_length(value) == 0)
        add_problem(problems, prefix, arg->name, "Must not be empty");
}

// 5.0 is an integer in JSON Schema; nothing else is turned into one.
static json_t *as_integer(const json_t *value)
{
    if (json_is_real(value)) {
        double number = json_real_value(value);
        if (number == trunc(number) && fabs(number) < 9e15)
            return json_integer((json_int_t)number);
    }
    return json_is_integer(value) ? json_incref((json_t *)value) : NULL;
}

static void check_integer(const struct tool_arg *arg, json_t *args, const char *prefix,
                          struct buffer *problems)
{
    json_t *number = as_integer(json_object_get(args, arg->name));
    json_int_t value = json_integer_value(number);
    char text[96];
    if (!number) {
        add_problem(problems, prefix, arg->name, "Expected an integer");
        return;
    }
    if (value < arg->min || (arg->max && value > arg->max)) {
        if (arg->max)
            snprintf(text, sizeof(text), "Must be from %lld to %lld", (long long)arg->min,
                     (long long)arg->max);
        else
            snprintf(text, sizeof(text), "Must be at least %lld", (long long)arg->min);
        add_problem(problems, prefix, arg->name, text);
    }
    json_object_set_new(args, arg->name, number);
}

static void check_list(const struct tool_arg *arg, const json_t *value, const char *prefix,
                       struct buffer *problems)
{
    if (!json_is_array(value))
        add_problem(problems, prefix, arg->name, "Expected an array of strings");
    for (size_t i = 0; i < json_array_size(value) && !problems->is_over; i++) {
        CLEANUP_FREE char *name = mem_format("%s[%zu]", arg->name, i);
        if (!json_is_string(json_array_get(value, i)))
            add_problem(problems, prefix, name, "Expected a string");
    }
}

static void fill_default(const struct tool_arg *arg, json_t *args)
{
    if (arg->default_text)
        json_object_set_new(args, arg->name, json_string(arg->default_text));
    else if (arg->has_default && arg->type == ARG_INTEGER)
        json_object_set_new(args, arg->name, json_integer(arg->default_number));
    else if (arg->has_default && arg->type == ARG_BOOLEAN)
        json_object_set_new(args, arg->name, json_boolean(arg->default_number));
}

static void check_args(const struct tool_arg *table, json_t *args, const char *prefix,
                       struct buffer *problems);

static void check_arg(const struct tool_arg *arg, json_t *args, const char *prefix, struct buffer *problems)
{
    json_t *value = json_object_get(args, arg->name);
    if (!value) {
        if (arg->is_required)
            add_problem(problems, prefix, arg->name, "Required");
        else
            fill_default(arg, args);
    } else if (arg->type == ARG_STRING) {
        check_string(arg, value, prefix, problems);
    } else if (arg->type == ARG_INTEGER) {
        check_integer(arg, args, prefix, problems);
    } else if (arg->type == ARG_BOOLEAN) {
        if (!json_is_boolean(value))
            add_problem(problems, prefix, arg->name, "Expected a boolean");
    } else if (arg->type == ARG_STRING_LIST) {
        check_list(arg, value, prefix, problems);
    } else if (!json_is_object(value)) {
        add_problem(problems, prefix, arg->name, "Expected an object");
    } else {
        CLEANUP_FREE char *inner = mem_format("%s%s.", prefix, arg->name);
        check_args(arg->fields, value, inner, problems);
    }
}

static bool is_known(const struct tool_arg *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return true;
    return false;
}

// The contract drops them without a word, although the schemas say additionalProperties: false.
static void drop_unknown(const struct tool_arg *table, json_t *args)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(args, next, name, value) if (!is_known(table, name)) json_object_del(args, name);
}

static void check_args(const struct tool_arg *table, json_t *args, const char *prefix,
                       struct buffer *problems)
{
    drop_unknown(table, args);
    for (const struct tool_arg *arg = table; arg && arg->name; arg++)
        check_arg(arg, args, prefix, problems);
}

int guest_tool_check_args(const struct tool *tool, const json_t *args, json_t **ret_args, char **ret_problem)
{
    CLEANUP_JSON json_t *copy = args ? json_deep_copy(args) : json_object();
    CLEANUP(buffer_free) struct buffer problems = BUFFER_INIT(MAX_PROBLEM_BYTES);
    check_args(tool->args, copy, "", &problems);
    if (problems.len || problems.is_over) {
        *ret_problem =
            mem_strdup(problems.len ? buffer_text(&problems) : "too many misfits at arguments");
        return -1;
    }
    *ret_args = TAKE_PTR(copy);
    return 0;
}
