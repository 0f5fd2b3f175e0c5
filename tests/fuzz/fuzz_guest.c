// Lines of input to a sandbox's tool server, up to its methods; here those are one that answers at once ("ping") and one
// that waits until it is cancelled or all has been read. Whatever comes: each line has at most one answer, each request
// that was taken exactly one, and every answer is one JSON-RPC line whose id was asked.
#include "api/guest/dispatch.h"
#include "api/guest/methods.h"
#include "controller/base/memory.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

static size_t started, cancelled, answers;

static void answer(struct request *request)
{
    started++;
    request_answer(request, json_object());
}

static void cancel(struct request *request)
{
    cancelled++;
    request_fail_cancelled(request);
}

static void wait(struct request *request)
{
    started++;
    request->cancel = cancel;
}

const struct method *method_find(const char *name)
{
    static const struct method methods[] = {{"ping", answer}, {"tools/call", wait}};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

void output_send(struct output *output, char *text, size_t len)
{
    (void)output;
    CLEANUP_JSON json_t *line = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    const json_t *error = json_object_get(line, "error"), *id = json_object_get(line, "id");
    fuzz_expect(line && !memchr(text, '\n', len), "an answer is one line of JSON");
    fuzz_expect(!error != !json_object_get(line, "result"), "an answer has either a result or an error");
    fuzz_expect(json_is_string(id) || json_is_integer(id) || json_is_null(id), "an answer has an id");
    fuzz_expect(!error || json_string_length(json_object_get(error, "message")) > 0, "an error says something");
    answers++;
    free(text);
}

static void take_line(struct guest *guest, const char *line, size_t len)
{
    size_t before = answers, cancelled_before = cancelled;
    char *exact = mem_alloc(len + 1); // with nothing but a NUL byte behind it, as the reader's buffer has
    memcpy(exact, line, len);
    dispatch_line(guest, exact, len);
    free(exact);
    fuzz_expect(answers - before <= 1 && cancelled - cancelled_before <= 1, "a line has at most one answer");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static struct guest guest;
    const char *at = (const char *)bytes, *end = at + len, *line_end;
    started = cancelled = answers = 0;
    for (; at < end; at = line_end + 1) {
        line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            line_end = end;
        take_line(&guest, at, (size_t)(line_end - at));
    }
    size_t waiting = (size_t)guest.request_count, before = answers;
    while (guest.requests)
        request_answer(guest.requests, json_object());
    fuzz_expect(guest.request_count == 0 && answers - before == waiting && answers >= started, "each request that was taken has one answer");
    return 0;
}
