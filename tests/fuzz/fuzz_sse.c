// A stream of server-sent events, as a server of a sandbox may send it. The first byte says in pieces of how many bytes it
// comes: the events must be the same as when it comes at once.
#include "controller/base/memory.h"
#include "reconcilers/session/codexpro/sse.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

struct seen {
    struct buffer events; // each with its length before it
    size_t count, wanted; // wanted: enough after so many
};

static bool see(void *arg, const char *data, size_t len)
{
    struct seen *seen = arg;
    buffer_append(&seen->events, (const char *)&len, sizeof(len));
    buffer_append(&seen->events, data, len);
    fuzz_expect(strnlen(data, len + 1) <= len, "an event's data ends with a NUL byte");
    return ++seen->count < seen->wanted;
}

static const char *feed(const char *bytes, size_t len, size_t piece, struct seen *seen)
{
    struct sse sse = SSE_INIT;
    const char *over = NULL;
    bool is_enough = false;
    for (size_t at = 0; at < len && !over && !is_enough; at += piece)
        over = sse_feed(&sse, bytes + at, len - at < piece ? len - at : piece, see, seen, &is_enough);
    fuzz_expect(is_enough == (seen->count == seen->wanted), "it ends early exactly when it was asked to");
    sse_free(&sse);
    return over;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (!len)
        return 0;
    size_t piece = bytes[0] % 16 + 1, wanted = bytes[0] / 16 ? bytes[0] / 16 : SIZE_MAX;
    struct seen whole = {.events = BUFFER_INIT(1 << 20), .wanted = wanted}, pieces = whole;
    const char *text = (const char *)bytes + 1;
    const char *over = feed(text, len - 1, len, &whole), *over_pieces = feed(text, len - 1, piece, &pieces);
    fuzz_expect(over == over_pieces, "what is over a limit is so in any pieces");
    fuzz_expect(whole.count == pieces.count && whole.events.len == pieces.events.len &&
                    memcmp(buffer_text(&whole.events), buffer_text(&pieces.events), whole.events.len) == 0,
                "the events do not depend on the pieces");
    buffer_free(&whole.events);
    buffer_free(&pieces.events);
    return 0;
}
