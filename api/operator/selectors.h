// Kubernetes' label and field selectors, as query text.
#pragma once
#include "controller/base/error.h"
#include "schemas/kinds/kinds.h"

#define SELECTOR_MAX_BYTES 4096
#define SELECTOR_MAX_TERMS 64

enum selector_operator {
    SELECTOR_EXISTS,
    SELECTOR_ABSENT,
    SELECTOR_IN,
    SELECTOR_NOT_IN,
    SELECTOR_GREATER, // of whole numbers
    SELECTOR_LESS,
};
struct selector_term {
    char *key;
    enum selector_operator op;
    struct text_list values; // of all but EXISTS and ABSENT; one number for GREATER and LESS
};
struct selector { // all terms must hold
    struct selector_term *terms;
    size_t count;
};
void selector_clear(struct selector *selector);
// "a=b,c!=d,e in (x, y),f notin (z),g,!h,i>1,j<2". text NULL or "": everything. ERROR_USAGE.
int selector_parse_labels(const char *text, struct selector *ret, struct error *err);
// "metadata.name=x,metadata.uid!=y". `fields`: the ones that exist, NULL at the end. ERROR_USAGE.
int selector_parse_fields(const char *text, const char *const *fields, struct selector *ret,
                          struct error *err);
// get answers the value of a term's key; NULL = there is none.
bool selector_fits(const struct selector *selector, const char *(*get)(const void *arg, const char *key),
                   const void *arg);
bool selector_fits_labels(const struct selector *selector, const struct text_map *labels);
// The value that the field must have, or NULL if the selector leaves it open.
const char *selector_wanted(const struct selector *selector, const char *field);
