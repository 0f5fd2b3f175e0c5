#include "controller/base/shared_text.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct shared_text *shared_text_new(const char *bytes, size_t len)
{
    struct shared_text *text = mem_realloc(NULL, sizeof(*text) + len + 1);
    atomic_init(&text->refs, 1);
    text->len = len;
    memcpy(text->bytes, bytes, len);
    text->bytes[len] = '\0';
    return text;
}

struct shared_text *shared_text_ref(struct shared_text *text)
{
    atomic_fetch_add_explicit(&text->refs, 1, memory_order_relaxed);
    return text;
}

void shared_text_unref(struct shared_text *text)
{
    if (text && atomic_fetch_sub(&text->refs, 1) == 1)
        free(text);
}
