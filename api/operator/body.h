// Bodies that hold an object: what they ask for, read into a record.
#pragma once
#include "api/operator/internal.h"

// Reads metadata and spec of `body` into `record` (a new one, or a copy of the stored one). All problems are
// collected in `causes`; err words them. ERROR_USAGE: the body is another object than the one asked for, or (field
// validation Strict) has unknown or repeated fields. ERROR_CONFLICT: it is about another uid. What is left out without
// being an error becomes a warning of the call.
int body_read(struct call *call, struct record *record, const json_t *body, json_t *causes, struct error *err);
// RFC 7386, in place.
void body_merge(json_t *target, const json_t *patch);
// fieldValidation: whether causes hold unknown or repeated fields; err words all of them as Kubernetes does.
int strict_check(const struct call *call, const json_t *causes, struct error *err);
void body_add_cause(json_t *causes, const char *field, const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
