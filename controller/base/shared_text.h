// A text that never changes and has several owners: the last one to let go frees it. Any thread.
#pragma once
#include <stdatomic.h>
#include <stddef.h>

struct shared_text {
    _Atomic int refs;
    size_t len;
    char bytes[]; // len of them, then a NUL
};
// Copies. The first reference is the caller's.
struct shared_text *shared_text_new(const char *bytes, size_t len);
struct shared_text *shared_text_join(const char *head, size_t head_len, const char *tail, size_t tail_len);
struct shared_text *shared_text_ref(struct shared_text *text);
void shared_text_unref(struct shared_text *text); // NULL allowed
