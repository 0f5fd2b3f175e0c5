// How a client wants objects shown: whole, their metadata only, or as rows of a Table.
#pragma once
#include "api/operator/resource.h"

enum rendering_form { RENDER_PLAIN, RENDER_METADATA, RENDER_TABLE };
enum rendering_include { INCLUDE_METADATA, INCLUDE_OBJECT, INCLUDE_NONE }; // what a Table's rows bring along
struct rendering {
    enum rendering_form form;
    enum rendering_include include;
};
// The first of the Accept header's types that is served here; accept NULL: plain. False: none of them is, and
// *ret is plain. include_object: the query argument or NULL.
bool rendering_read(const char *accept, const char *include_object, struct rendering *ret);

// New references; images are borrowed, and may become part of the result.
json_t *rendering_one(const struct rendering *rendering, const struct resource *resource, json_t *image,
                      struct wall_time now);
// items: an array of images.
json_t *rendering_list(const struct rendering *rendering, const struct resource *resource, json_t *items,
                       int64_t revision, struct wall_time now);
// The same for an event of a watch: columns only where has_columns.
json_t *rendering_event(const struct rendering *rendering, const struct resource *resource, json_t *image,
                        struct wall_time now, bool has_columns);

// ---- table.c
json_t *table_make(const struct resource *resource, json_t *items, enum rendering_include include,
                   struct wall_time now, bool has_columns);
json_t *metadata_of(json_t *image); // PartialObjectMetadata
#define AGE_TEXT_SIZE 32
void age_format(int64_t ms, char text[AGE_TEXT_SIZE]); // "45s", "3m12s", "5h", "2d"
// Time since `text` (RFC 3339) as people read it; "<unknown>" where there is none.
json_t *age_cell(const char *text, struct wall_time now);
