// Lists in pieces, so that neither side holds all of a large one at once while it is sent. All pieces are of one revision; where that
// is trimmed away meanwhile (410), it is listed anew, the last time in one piece.
#include "cli/get.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

#define CHUNK_DEFAULT "500"
#define ATTEMPTS 3

int get_check_chunk_size(const struct invocation *in, struct error *err)
{
    const char *text = invocation_option(in, "chunk-size");
    size_t digits = text ? strspn(text, "0123456789") : 1;
    if (digits && digits < 9 && (!text || !text[digits]))
        return 0;
    return error_set(err, ERROR_USAGE, "give a number like --chunk-size=500; 0 lists in one piece", "--chunk-size cannot be '%.40s'", text);
}

static int fetch_piece(const struct get *get, const char *path, const char *limit, const char *from, json_t **ret, struct error *err)
{
    CLEANUP_FREE char *escaped = from ? http_escape(from) : NULL;
    CLEANUP_FREE char *whole = mem_format("%s%climit=%s%s%s", path, strchr(path, '?') ? '&' : '?', limit, from ? "&continue=" : "", from ? escaped : "");
    const struct rest_ask ask = {.method = "GET", .path = whole, .accept = get->form == GET_TABLE ? REST_AS_TABLE : NULL};
    return rest_call(get->rest, &ask, ret, NULL, NULL, err);
}

static void append(json_t *all, const json_t *piece, const char *member)
{
    json_array_extend(json_object_get(all, member), json_object_get(piece, member));
}

static int fetch_pieces(const struct get *get, const char *path, const char *limit, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *all = NULL;
    CLEANUP_FREE char *from = NULL;
    do {
        CLEANUP_JSON json_t *piece = NULL;
        if (fetch_piece(get, path, limit, from, &piece, err) < 0)
            return -1;
        mem_replace(&from, json_get_text(json_object_get(piece, "metadata"), "continue"));
        if (all) {
            append(all, piece, get->form == GET_TABLE ? "rows" : "items");
        } else {
            all = TAKE_PTR(piece);
        }
    } while (from && *from);
    json_object_del(json_object_get(all, "metadata"), "continue");
    json_object_del(json_object_get(all, "metadata"), "remainingItemCount");
    *ret = TAKE_PTR(all);
    return 0;
}

int get_list(const struct get *get, const char *path, json_t **ret, struct error *err)
{
    const char *limit = invocation_option(get->in, "chunk-size");
    struct error local = ERROR_INIT;
    for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
        bool is_last = attempt == ATTEMPTS;
        local = (struct error)ERROR_INIT;
        if (fetch_pieces(get, path, is_last ? "0" : limit ? limit : CHUNK_DEFAULT, ret, &local) == 0)
            return 0;
        if (local.code != ERROR_EXPIRED)
            break;
    }
    return error_copy(err, &local);
}
