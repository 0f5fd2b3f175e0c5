#include "controller/base/shared_text.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

struct shared_text *shared_text_join(const char *head, size_t head_len, const char *tail, size_t tail_len)
{
    struct shared_text *text = mem_realloc(NULL, sizeof(*text) + head_len + tail_len + 1);
    atomic_init(&text->refs, 1);
    text->len = head_len + tail_len;
    memcpy(text->bytes, head, head_len);
    memcpy(text->bytes + head_len, tail, tail_len);
    text->bytes[text->len] = '\0';
    return text;
}

struct shared_text *shared_text_new(const char *bytes, size_t len)
{
    return shared_text_join(bytes, len, "", 0);
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
