// How a client wants objects shown: whole, their metadata only, or as rows of a Table. All of it is text from images in text:
// nothing is parsed, so that long lists cost little more than their bytes.
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

// ---- show.c
// One object by itself, as an event of a watch has it too: columns only where has_columns.
void rendering_put_one(struct buffer *to, const struct rendering *rendering, const struct resource *resource, struct json_span image,
                       struct wall_time now, bool has_columns);
// A list: begin, its items, end.
struct rendering_list {
    const struct rendering *rendering;
    const struct resource *resource;
    struct buffer *to;
    struct wall_time now; // for ages
    size_t count;         // items so far
};
void rendering_list_begin(struct rendering_list *list);
void rendering_list_item(struct rendering_list *list, struct json_span image);
void rendering_list_end(struct rendering_list *list, int64_t revision, const char *next, int64_t rest); // next NULL, rest <= 0: none

// ---- table.c
void table_put_columns(struct buffer *to, const struct resource *resource);
void table_put_row(struct buffer *to, const struct resource *resource, struct json_span image, enum rendering_include include,
                   struct wall_time now);
void metadata_put(struct buffer *to, struct json_span meta); // PartialObjectMetadata of this metadata
#define AGE_TEXT_SIZE 32
void age_format(int64_t ms, char text[AGE_TEXT_SIZE]); // "45s", "3m12s", "5h", "2d"
// Time since `text` (RFC 3339) as people read it; "<unknown>" where there is none.
json_t *age_cell(const char *text, struct wall_time now);
