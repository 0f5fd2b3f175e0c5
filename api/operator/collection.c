// What a GET of a collection asks for.
#include "api/operator/collection.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LIMIT_MAX 1000000
#define TIMEOUT_MAX_S (24 * 3600)

void collection_query_clear(struct collection_query *query)
{
    selector_clear(&query->labels);
    selector_clear(&query->fields);
}

static int read_flag(const char *name, const char *text, bool *ret, struct error *err)
{
    bool is_true = text && (!*text || strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
    if (text && !is_true && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return error_set(err, ERROR_USAGE, "use true or false", "%s: '%.32s' is neither true nor false", name,
                         text);
    *ret = is_true;
    return 0;
}

static int read_number(const char *name, const char *text, int64_t max, int64_t *ret, struct error *err)
{
    char *end;
    if (!text || !*text)
        return 0;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || *end || text[0] < '0' || text[0] > '9')
        return error_set(err, ERROR_USAGE, "use a whole number that is not negative",
                         "%s: '%.32s' is no number", name, text);
    *ret = value > max ? max : value;
    return 0;
}

static int read_match(const struct call *call, struct collection_query *query, struct error *err)
{
    static const char *const words[] = {[MATCH_NOT_OLDER] = "NotOlderThan", [MATCH_EXACT] = "Exact"};
    const char *match = call->query[QUERY_RESOURCE_VERSION_MATCH],
               *version = call->query[QUERY_RESOURCE_VERSION];
    query->is_any = version && strcmp(version, "0") == 0;
    if (!match || !*match) {
        query->match = !query->revision ? MATCH_ANY : query->limit ? MATCH_EXACT : MATCH_NOT_OLDER;
        return 0;
    }
    query->has_match = true;
    query->match = strcmp(match, words[MATCH_EXACT]) == 0 ? MATCH_EXACT : MATCH_NOT_OLDER;
    if (strcmp(match, words[query->match]) != 0)
        return error_set(err, ERROR_USAGE, "use Exact or NotOlderThan",
                         "resourceVersionMatch: '%.32s' is unknown", match);
    if ((!version || !*version) && query->sends_initial < 0)
        return error_set(err, ERROR_USAGE, "give resourceVersion too, or leave it out",
                         "resourceVersionMatch is forbidden unless resourceVersion is provided");
    if (query->match == MATCH_EXACT && query->is_any)
        return error_set(err, ERROR_USAGE, "give a version that the server showed",
                         "resourceVersionMatch=Exact is forbidden for resourceVersion=0");
    return 0;
}

static int read_watch(const struct call *call, struct collection_query *query, struct error *err)
{
    const char *initial = call->query[QUERY_SEND_INITIAL_EVENTS];
    bool sends = false;
    if (read_flag("watch", call->query[QUERY_WATCH], &query->is_watch, err) < 0 ||
        read_flag("allowWatchBookmarks", call->query[QUERY_ALLOW_BOOKMARKS], &query->wants_bookmarks, err) <
            0 ||
        read_flag("sendInitialEvents", initial, &sends, err) < 0)
        return -1;
    query->sends_initial = initial && *initial ? sends : -1;
    if (query->sends_initial >= 0 && !query->is_watch)
        return error_set(err, ERROR_USAGE, "use it with watch=true",
                         "sendInitialEvents is forbidden for a list");
    return 0;
}

static int check_watch(const struct collection_query *query, struct error *err)
{
    bool is_not_older = query->has_match && query->match == MATCH_NOT_OLDER;
    if (query->is_watch && query->sends_initial >= 0 && !is_not_older)
        return error_set(err, ERROR_USAGE, "add resourceVersionMatch=NotOlderThan",
                         "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (query->is_watch && query->sends_initial < 0 && query->has_match)
        return error_set(err, ERROR_USAGE, "leave it out, or use it with sendInitialEvents",
                         "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    return 0;
}

static int read_query(const struct call *call, struct collection_query *query, struct error *err)
{
    if (selector_parse_labels(call->query[QUERY_LABEL_SELECTOR], &query->labels, err) < 0 ||
        selector_parse_fields(call->query[QUERY_FIELD_SELECTOR], resource_fields(query->resource),
                              &query->fields, err) < 0 ||
        read_number("resourceVersion", call->query[QUERY_RESOURCE_VERSION], INT64_MAX, &query->revision,
                    err) < 0 ||
        read_number("limit", call->query[QUERY_LIMIT], LIMIT_MAX, &query->limit, err) < 0 ||
        read_number("timeoutSeconds", call->query[QUERY_TIMEOUT_SECONDS], TIMEOUT_MAX_S, &query->timeout_s,
                    err) < 0)
        return -1;
    if (read_watch(call, query, err) < 0 || read_match(call, query, err) < 0)
        return -1;
    return check_watch(query, err);
}

struct resource_page_request collection_page(const struct collection_query *query, size_t limit)
{
    bool has_names = query->resource->feed == FEED_RECORDS;
    return (struct resource_page_request){
        .limit = limit,
        .name = has_names ? selector_wanted(&query->fields, "metadata.name") : NULL,
        .about_uid = has_names ? NULL : selector_wanted(&query->fields, "involvedObject.uid"),
    };
}

// A version that is yet to come: Kubernetes' own answer, by which its clients know to begin anew.
static bool is_in_the_future(struct call *call, const struct collection_query *query)
{
    int64_t newest = resource_newest(call->world->store, query->resource->feed);
    bool is_bound = query->match != MATCH_ANY && (!query->is_watch || query->sends_initial == 1);
    if (!is_bound || query->revision <= newest)
        return false;
    struct error err = ERROR_INIT;
    error_set(&err, ERROR_TIMEOUT, "list again without it",
              "Too large resource version: %" PRId64 ", current: %" PRId64, query->revision, newest);
    CLEANUP_JSON json_t *causes = json_pack("[{s:s, s:s}]", "reason", "ResourceVersionTooLarge", "message",
                                            "Too large resource version");
    operator_fail_with(call, &err, causes);
    return true;
}

void collection_read(struct call *call, const struct resource *resource)
{
    CLEANUP(collection_query_clear)
    struct collection_query query = {.resource = resource, .sends_initial = -1};
    struct error err = ERROR_INIT;
    if (!rendering_read(call->accept, call->query[QUERY_INCLUDE_OBJECT], &query.rendering))
        operator_fail_as(call, 406, ERROR_UNSUPPORTED, "accept application/json",
                         "none of the media types of Accept is served here: %.200s", call->accept);
    else if (read_query(call, &query, &err) < 0)
        operator_fail(call, &err);
    else if (is_in_the_future(call, &query))
        return;
    else if (query.is_watch)
        watch_start(call, &query);
    else
        collection_list(call, &query);
}

void collection_get(struct call *call, const struct resource *resource)
{
    struct rendering rendering;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *image = NULL;
    rendering_read(call->accept, call->query[QUERY_INCLUDE_OBJECT], &rendering);
    if (resource_get(call->world->store, resource, call->match.name, &image, &err) < 0) {
        operator_fail(call, &err);
        return;
    }
    operator_answer_image(call, 200, &rendering, resource, (struct json_span){image, strlen(image)});
}
