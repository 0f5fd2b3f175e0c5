// /metrics: every line is what Prometheus' text format allows, and every figure that is promised is there.
#include "controller/base/memory.h"
#include "tests/support/operator_rig.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FAMILIES_MAX 64
#define SAMPLES_MAX 4096

struct family {
    char name[128], type[16];
    size_t samples;
};
struct sample {
    char series[512]; // name and labels as written
    size_t family;
};
struct reading {
    struct family families[FAMILIES_MAX];
    size_t family_count;
    struct sample samples[SAMPLES_MAX];
    size_t sample_count;
    bool has_help; // the last line was one; its TYPE comes next
    // Of the histogram that is being read: its buckets so far
    char bucket_of[512];
    double last_bound, last_count;
};

static size_t name_length(const char *text)
{
    size_t len = 0;
    while (isalpha((unsigned char)text[len]) || text[len] == '_' || text[len] == ':' || (len && isdigit((unsigned char)text[len])))
        len++;
    return len;
}

static void read_help(struct reading *r, const char *line)
{
    size_t len = name_length(line + 7);
    assert_false(r->has_help);
    assert_true(len && line[7 + len] == ' ' && line[8 + len]);
    assert_true(r->family_count < FAMILIES_MAX);
    struct family *family = &r->families[r->family_count++];
    snprintf(family->name, sizeof(family->name), "%.*s", (int)len, line + 7);
    for (size_t i = 0; i + 1 < r->family_count; i++)
        assert_string_not_equal(r->families[i].name, family->name);
    r->has_help = true;
}

static void read_type(struct reading *r, const char *line)
{
    struct family *family = &r->families[r->family_count - 1];
    assert_true(r->has_help);
    CLEANUP_FREE char *wanted = mem_format("# TYPE %s ", family->name);
    assert_memory_equal(line, wanted, strlen(wanted));
    snprintf(family->type, sizeof(family->type), "%s", line + strlen(wanted));
    assert_true(strcmp(family->type, "counter") == 0 || strcmp(family->type, "gauge") == 0 || strcmp(family->type, "histogram") == 0);
    if (strcmp(family->type, "counter") == 0)
        assert_string_equal(family->name + strlen(family->name) - 6, "_total");
    r->has_help = false;
}

// {a="…",b="…"}: its end. *ret_bound: the value of le.
static const char *read_labels(const char *at, char bound[32])
{
    for (const char *previous = at; *at != '}'; previous = at) {
        size_t len = name_length(++at);
        assert_true(len && at[len] == '=' && at[len + 1] == '"');
        bool is_bound = len == 2 && strncmp(at, "le", 2) == 0;
        const char *value = at += len + 2;
        for (; *at != '"'; at++) {
            assert_true(*at && *at != '\n');
            if (*at == '\\')
                assert_non_null(strchr("\\\"n", *++at));
        }
        if (is_bound)
            snprintf(bound, 32, "%.*s", (int)(at - value), value);
        at++;
        assert_true(*at == ',' || *at == '}');
        assert_ptr_not_equal(at, previous);
    }
    return at + 1;
}

static void read_bucket(struct reading *r, const char *line, const char *bound, double value)
{
    double limit = strcmp(bound, "+Inf") == 0 ? INFINITY : strtod(bound, NULL);
    CLEANUP_FREE char *series = mem_strndup(line, (size_t)(strstr(line, "le=") - line));
    if (strcmp(series, r->bucket_of) != 0) {
        snprintf(r->bucket_of, sizeof(r->bucket_of), "%s", series);
        r->last_bound = -1;
        r->last_count = 0;
    }
    assert_true(limit > r->last_bound && value >= r->last_count);
    r->last_bound = limit;
    r->last_count = value;
}

// A histogram's last bucket is the infinite one, and counts all.
static void read_count(const struct reading *r, double value)
{
    assert_true(isinf(r->last_bound) && r->last_count == value);
}

static void read_sample(struct reading *r, const char *line)
{
    struct family *family = &r->families[r->family_count - 1];
    size_t len = name_length(line), of_family = strlen(family->name);
    char bound[32] = "", *end;
    assert_false(r->has_help);
    assert_true(r->family_count && len >= of_family && strncmp(line, family->name, of_family) == 0);
    CLEANUP_FREE char *suffix = mem_strndup(line + of_family, len - of_family);
    const char *at = line[len] == '{' ? read_labels(line + len, bound) : line + len;
    assert_true(*at == ' ');
    double value = strtod(at + 1, &end);
    assert_true(end != at + 1 && !*end);
    bool is_histogram = strcmp(family->type, "histogram") == 0;
    assert_int_equal(is_histogram, strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_sum") == 0 || strcmp(suffix, "_count") == 0);
    assert_int_equal(is_histogram && strcmp(suffix, "_bucket") == 0, *bound != '\0');
    if (*bound)
        read_bucket(r, line, bound, value);
    if (strcmp(suffix, "_count") == 0)
        read_count(r, value);
    if (strcmp(family->type, "gauge") != 0)
        assert_true(value >= 0);
    assert_true(r->sample_count < SAMPLES_MAX);
    struct sample *sample = &r->samples[r->sample_count++];
    *sample = (struct sample){.family = r->family_count - 1};
    snprintf(sample->series, sizeof(sample->series), "%.*s", (int)(at - line), line);
    for (size_t i = 0; i + 1 < r->sample_count; i++)
        assert_string_not_equal(r->samples[i].series, sample->series);
    family->samples++;
}

static struct reading *read_all(char *text)
{
    struct reading *r = mem_alloc(sizeof(*r));
    assert_string_equal(text + strlen(text) - 1, "\n");
    for (char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        if (strncmp(line, "# HELP ", 7) == 0)
            read_help(r, line);
        else if (*line == '#')
            read_type(r, line);
        else
            read_sample(r, line);
    }
    assert_false(r->has_help);
    return r;
}

static bool has_sample(const struct reading *r, const char *beginning)
{
    for (size_t i = 0; i < r->sample_count; i++)
        if (strncmp(r->samples[i].series, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

static void every_line_is_valid_and_every_figure_is_there(void **state)
{
    static const char *const wanted[] = {
        "chat2shell_queue_depth{reconciler=\"workspace\"}",
        "chat2shell_queue_wait_seconds_bucket{reconciler=\"sandbox\",le=\"+Inf\"}",
        "chat2shell_reconcile_duration_seconds_count{reconciler=\"sandbox\",result=\"",
        "chat2shell_reconcile_retries_total{reconciler=\"exposure\"}",
        "chat2shell_driver_call_duration_seconds_count{command=\"",
        "chat2shell_lane_wait_seconds_count",
        "chat2shell_open_connections{listener=\"unix\"}",
        "chat2shell_store_size_bytes",
        "chat2shell_store_write_duration_seconds_count{result=\"ok\"}",
        "chat2shell_objects{kind=\"Sandbox\"}",
        "chat2shell_watches",
    };
    const struct operator_rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *sandbox = world_create_running(rig->fixture);
    CLEANUP_JSON json_t *result = NULL;
    assert_ok(world_call(rig->fixture, sandbox->meta.uid, "bash", json_pack("{s:s}", "command", "true"), &result, &err));
    CLEANUP_FREE char *text = operator_rig_text(rig, "/metrics", 200);
    CLEANUP_FREE struct reading *r = read_all(text);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (!has_sample(r, wanted[i]))
            fail_msg("there is no %s", wanted[i]);
    bool has_calls = false; // of tools: nobody called one over MCP here, but the family is announced
    for (size_t i = 0; i < r->family_count; i++)
        has_calls |= strcmp(r->families[i].name, "chat2shell_mcp_calls_total") == 0;
    assert_true(has_calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_line_is_valid_and_every_figure_is_there, operator_rig_setup, operator_rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
