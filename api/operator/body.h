// Bodies that hold an object: what they ask for, read into a record.
#pragma once
#include "api/operator/internal.h"

// Reads metadata and spec of `body` into `record` (a new one, or a copy of the stored one). All problems are
// collected in `causes`; err words them. ERROR_USAGE: the body is another object than the one asked for.
int body_read(struct record *record, const json_t *body, bool is_lenient, json_t *causes, struct error *err);
// The stored record's object with the body merged into it (RFC 7386), as far as callers own it. New
// reference.
json_t *body_merge(const struct record *current, const json_t *body);
void body_add_cause(json_t *causes, const char *field, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
