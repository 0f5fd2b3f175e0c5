// Pages of a kind's records as they were at one revision.
#include "controller/base/memory.h"
#include "controller/store/internal.h"

enum page_column { COLUMN_ID = COLUMN_COUNT, COLUMN_BEFORE }; // behind RECORD_COLUMNS

void store_page_clear(struct store_page *page)
{
    buffer_free(&page->text);
    free(page->items);
    *page = (struct store_page){0};
}

void store_page_add(struct store_page *page, int64_t id, const char *text, size_t len)
{
    size_t begin = page->text.len;
    buffer_append(&page->text, text, len);
    store_page_end_item(page, id, begin);
}

void store_page_end_item(struct store_page *page, int64_t id, size_t begin)
{
    if (page->count == page->room)
        page->items = mem_realloc_array(page->items, page->room = page->room ? 2 * page->room : 16, sizeof(*page->items));
    page->items[page->count++] = (struct store_page_item){id, begin, page->text.len - begin};
}

static int read_item(struct store *store, sqlite3_stmt *row, struct store_page *page, struct error *err)
{
    size_t begin = page->text.len;
    const char *before = sql_text_or_null(row, COLUMN_BEFORE);
    if (before)
        buffer_append(&page->text, before, (size_t)sqlite3_column_bytes(row, COLUMN_BEFORE));
    else if (image_put(store, row, &page->text, err) < 0)
        return -1;
    store_page_end_item(page, sqlite3_column_int64(row, COLUMN_ID), begin);
    return 0;
}

static int read_items(struct store *store, struct sql *sql, sqlite3_stmt *stmt, size_t limit,
                      struct store_page *page, struct error *err)
{
    int row = stmt ? 1 : -1;
    while (row > 0 && (row = sql_next(sql, stmt, err)) > 0) {
        if (page->count == limit) {
            page->has_more = true;
            break;
        }
        if (read_item(store, stmt, page, err) < 0)
            row = -1;
    }
    sql_done(stmt);
    return row < 0 ? -1 : 0;
}

static sqlite3_stmt *query_page(struct sql *sql, const struct store_page_request *request, bool is_newest,
                                struct error *err)
{
    const char *kind = kind_info(request->kind)->name;
    int64_t limit = (int64_t)request->limit + 1; // the one more tells whether there are more
    if (!is_newest)
        return sql_query(sql, SQL_PAGE_AT, err, "tiiit", kind, request->after, request->revision, limit,
                         request->name);
    if (request->name)
        return sql_query(sql, SQL_PAGE_NAMED, err, "tiit", kind, request->after, limit, request->name);
    return sql_query(sql, SQL_PAGE, err, "tii", kind, request->after, limit);
}

static int count_rest(struct sql *sql, const struct store_page_request *request, bool is_newest,
                      struct store_page *page, struct error *err)
{
    const char *kind = kind_info(request->kind)->name;
    int64_t last = page->count ? page->items[page->count - 1].id : request->after;
    page->rest = 0;
    if (!page->has_more)
        return 0;
    return is_newest
               ? sql_number(sql, SQL_PAGE_REST, &page->rest, err, "ti", kind, last)
               : sql_number(sql, SQL_PAGE_REST_AT, &page->rest, err, "tii", kind, last, request->revision);
}

static int read_page(struct store *store, struct sql *sql, const struct store_page_request *request,
                     struct store_page *page, struct error *err)
{
    int64_t newest;
    if (feed_newest(sql, &newest, err) < 0)
        return -1;
    bool is_newest = !request->revision || request->revision == newest;
    if (!is_newest && feed_check_position(sql, request->revision, err) < 0)
        return -1;
    page->revision = is_newest ? newest : request->revision;
    page->rest = -1;
    if (read_items(store, sql, query_page(sql, request, is_newest, err), request->limit, page, err) < 0)
        return -1;
    return request->must_count ? count_rest(sql, request, is_newest, page, err) : 0;
}

int store_read_page(struct store *store, const struct store_page_request *request, struct store_page *ret,
                    struct error *err)
{
    struct store_page page = STORE_PAGE_INIT;
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int r = sql_run(sql, SQL_BEGIN_READ, err, "");
    if (r == 0) {
        r = read_page(store, sql, request, &page, err);
        sql_run(sql, SQL_COMMIT, NULL, "");
    }
    readers_release(&store->readers, sql);
    if (r < 0)
        return store_page_clear(&page), -1;
    *ret = page;
    return 0;
}
