// Life of a record: what it owns is in the field tables.
#include "controller/record.h"
#include "controller/base/memory.h"
#include "schemas/kinds/common.h"
#include <stdlib.h>

struct record *record_new(enum kind kind)
{
    struct record *record = mem_alloc(sizeof(*record));
    record->kind = kind_info(kind)->kind;
    return record;
}

struct record *record_copy(const struct record *from)
{
    struct record *copy = record_new(from->kind);
    fields_copy(&record_meta_table, &from->meta, &copy->meta);
    fields_copy(kind_spec_table(from->kind), &from->spec, &copy->spec);
    fields_copy(kind_status_table(from->kind), &from->status, &copy->status);
    return copy;
}

void record_free(struct record *record)
{
    if (!record)
        return;
    fields_clear(&record_meta_table, &record->meta);
    fields_clear(kind_spec_table(record->kind), &record->spec);
    fields_clear(kind_status_table(record->kind), &record->status);
    free(record);
}

void record_list_free(struct record_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        record_free(list->items[i]);
    free(list->items);
    *list = (struct record_list){0};
}

bool record_status_equals(const struct record *a, const struct record *b)
{
    return a->kind == b->kind && fields_equal(kind_status_table(a->kind), &a->status, &b->status);
}

bool record_spec_equals(const struct record *a, const struct record *b)
{
    return a->kind == b->kind && fields_equal(kind_spec_table(a->kind), &a->spec, &b->spec);
}

int record_check_update(const struct record *before, const struct record *after, struct error *err)
{
    return fields_check_immutable(kind_spec_table(after->kind), &before->spec, &after->spec, "spec", NULL,
                                  err);
}

// ---- owners
bool owners_equal(const struct owner_list *a, const struct owner_list *b)
{
    return fields_equal(&given_owners_table, a, b);
}

void owners_copy(const struct owner_list *from, struct owner_list *to)
{
    fields_clear(&given_owners_table, to);
    fields_copy(&given_owners_table, from, to);
}
