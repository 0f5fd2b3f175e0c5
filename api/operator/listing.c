// Lists, whole or in pieces. All pieces show the revision of the first one.
#include "api/operator/collection.h"
#include "controller/base/memory.h"
#include <string.h>

#define PAGE_ROWS 500                 // read at once
#define LIST_MAX_BYTES (256UL << 20) // of one answer

struct listing {
    struct call *call;
    const struct collection_query *query;
    struct resource_page_request page;
    struct buffer text; // of the answer
    struct rendering_list list;
    size_t limit;     // SIZE_MAX = all
    int64_t revision; // of the first page
    int64_t rest;     // -1 = not known
    bool has_more;
};

static void listing_clear(struct listing *listing)
{
    buffer_free(&listing->text);
}

static bool has_selectors(const struct collection_query *query)
{
    return query->labels.count || query->fields.count;
}

// Takes what fits out of the page until the limit is reached.
static void take_items(struct listing *listing, const struct store_page *page)
{
    const struct collection_query *query = listing->query;
    for (size_t i = 0; i < page->count && listing->list.count < listing->limit; i++) {
        listing->page.after = page->items[i].id;
        struct json_span image = store_page_image(page, i);
        if (image_fits(image, &query->labels, &query->fields))
            rendering_list_item(&listing->list, image);
    }
    bool is_used_up = !page->count || listing->page.after == page->items[page->count - 1].id;
    listing->has_more = page->has_more || !is_used_up;
}

static int read_one(struct listing *listing, struct error *err)
{
    struct store_page page;
    size_t missing = listing->limit - listing->list.count;
    listing->page.limit = missing < PAGE_ROWS && !has_selectors(listing->query) ? missing : PAGE_ROWS;
    listing->page.must_count = listing->limit != SIZE_MAX && !has_selectors(listing->query);
    if (resource_read_page(listing->call->world->store, listing->query->resource, &listing->page, &page,
                           err) < 0)
        return -1;
    take_items(listing, &page);
    listing->rest = page.rest;
    if (!listing->revision)
        listing->revision = page.revision;
    listing->page.revision = listing->revision;
    store_page_clear(&page);
    return 0;
}

static int read_all(struct listing *listing, struct error *err)
{
    do {
        if (read_one(listing, err) < 0)
            return -1;
    } while (listing->has_more && listing->list.count < listing->limit && !listing->text.is_over);
    return 0;
}

static void end_list(struct listing *listing)
{
    char next[TOKEN_SIZE];
    const struct list_token token = {listing->revision, listing->page.after};
    if (listing->has_more)
        list_token_write(&token, store_instance(listing->call->world->store), next);
    rendering_list_end(&listing->list, listing->revision, listing->has_more ? next : NULL, listing->rest);
}

static int make_list(struct listing *listing, struct error *err)
{
    if (read_all(listing, err) < 0)
        return -1;
    end_list(listing);
    if (listing->text.is_over)
        return error_set(err, ERROR_TOO_LARGE, "ask for it in pieces, with limit", "the list is larger than %lu MiB", LIST_MAX_BYTES >> 20);
    return 0;
}

static void answer(struct listing *listing)
{
    size_t len = listing->text.len;
    operator_answer_json_text(listing->call, 200, buffer_take_string(&listing->text), len);
}

static int start_from_token(struct listing *listing, const char *text, struct error *err)
{
    struct list_token token = {0};
    const char *version = listing->call->query[QUERY_RESOURCE_VERSION];
    if (version && *version && strcmp(version, "0") != 0)
        return error_set(err, ERROR_USAGE, "leave out resourceVersion: the token has it",
                         "specifying resource version is not allowed when using continue");
    if (list_token_read(text, store_instance(listing->call->world->store), &token, err) < 0)
        return -1;
    listing->page.after = token.after;
    listing->page.revision = listing->revision = token.revision;
    return 0;
}

static void fail(struct listing *listing, bool has_token, const struct error *err)
{
    char text[TOKEN_SIZE];
    const struct list_token token = {0, listing->page.after};
    list_token_write(&token, store_instance(listing->call->world->store), text);
    if (err->code == ERROR_EXPIRED && has_token)
        operator_fail_expired(listing->call, err, text);
    else
        operator_fail(listing->call, err);
}

void collection_list(struct call *call, const struct collection_query *query)
{
    struct error err = ERROR_INIT;
    const char *token = call->query[QUERY_CONTINUE];
    bool has_token = token && *token;
    CLEANUP(listing_clear)
    struct listing listing = {.call = call,
                              .query = query,
                              .page = collection_page(query, 0),
                              .text = BUFFER_INIT(LIST_MAX_BYTES),
                              .limit = query->limit ? (size_t)query->limit : SIZE_MAX};
    listing.list = (struct rendering_list){&query->rendering, query->resource, &listing.text, clock_wall(call->world->clock), 0};
    rendering_list_begin(&listing.list);
    if (query->match == MATCH_EXACT)
        listing.page.revision = listing.revision = query->revision;
    if ((has_token && start_from_token(&listing, token, &err) < 0) || make_list(&listing, &err) < 0)
        fail(&listing, has_token, &err);
    else
        answer(&listing);
}
