// Errors as people read them: what, why, fix; one line each, on stderr.
#include "cli/command.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

// "dev.yaml:3:7", "standard input:2": a place, which belongs to what follows it.
static bool is_place(const char *text, size_t len)
{
    size_t digits = 0;
    while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
        digits++;
    return digits > 0 && digits < len && text[len - 1 - digits] == ':';
}

// Where the what ends and the why begins: the first ": " behind a clause. A place is not one, nor is a single word like
// "spec.port"; and a single word behind the colon is no reason.
static const char *find_why(const char *message)
{
    const char *colon = strstr(message, ": ");
    if (!colon || is_place(message, (size_t)(colon - message)))
        return NULL;
    bool is_clause = memchr(message, ' ', (size_t)(colon - message)) && strchr(colon + 2, ' ');
    return is_clause ? colon : NULL;
}

static void put(const char *label, enum style style, const char *text, size_t len, bool keeps_lines)
{
    CLEANUP_FREE char *printable = utf8_to_printable(text, len, keeps_lines);
    fprintf(stderr, "%s%s%s %s\n", style_on(stderr, style), label, style_off(stderr, style), printable);
}

static void complain_json(const struct error *err)
{
    const struct error_meaning *meaning = error_meaning(err->code);
    CLEANUP_JSON json_t *status = json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:{s:s}}", "kind", "Status", "apiVersion", "v1", "status", "Failure",
                                            "message", json_from_text(err->message), "reason", meaning->reason, "code", meaning->http_status, "details",
                                            "code", meaning->name);
    if (err->hint[0])
        json_object_set_new(json_object_get(status, "details"), "hint", json_from_text(err->hint));
    CLEANUP_FREE char *text = json_to_pretty_text(status);
    fprintf(stderr, "%s\n", text);
}

void complain(const struct invocation *in, const struct error *err)
{
    fflush(stdout);
    if (!err->message[0])
        return; // told already, piece by piece
    if (invocation_is_output(in, "json")) {
        complain_json(err);
        return;
    }
    const char *message = err->message, *why = find_why(message);
    put("error:", STYLE_BAD, message, why ? (size_t)(why - message) : strlen(message), false);
    if (why)
        put("  why:", STYLE_FAINT, why + 2, strlen(why + 2), false);
    complain_hint(err);
}

void complain_hint(const struct error *err)
{
    if (err->hint[0])
        put("  fix:", STYLE_FAINT, err->hint, strlen(err->hint), false);
}

void complain_line(const char *text)
{
    put("error:", STYLE_BAD, text, strlen(text), false);
}

void complain_text(const char *text)
{
    put("error:", STYLE_BAD, text, strlen(text), true);
}
