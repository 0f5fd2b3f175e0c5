#include "api/guest/bundle.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdarg.h>
#include <string.h>

#define MIN_FENCE 3
#define MAX_FENCE 64

size_t bundle_room(const struct bundle *bundle)
{
    size_t used = bundle->text.len + bundle->reserve;
    return used < bundle->text.max ? bundle->text.max - used : 0;
}

static void append(struct bundle *bundle, const char *bytes, size_t len)
{
    if (len > bundle_room(bundle)) {
        bundle->is_truncated = true;
        len = utf8_cut(bytes, bundle_room(bundle));
    }
    buffer_append(&bundle->text, bytes, len);
}

void bundle_format(struct bundle *bundle, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *text = mem_vformat(format, args);
    va_end(args);
    append(bundle, text, strlen(text));
}

// A fence longer than any row of its characters in the text.
static void make_fence(const char *text, size_t len, char fence[MAX_FENCE + 1])
{
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < len; i++) {
        run = text[i] == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    size_t count = longest < MIN_FENCE ? MIN_FENCE : longest + 1;
    count = count > MAX_FENCE ? MAX_FENCE : count;
    memset(fence, longest >= MAX_FENCE ? '~' : '`', count);
    fence[count] = '\0';
}

void bundle_add_fenced(struct bundle *bundle, const char *language, const char *text, size_t len, size_t max)
{
    char fence[MAX_FENCE + 1];
    make_fence(text, len, fence);
    size_t frame = 2 * strlen(fence) + strlen(language) + 100, room = bundle_room(bundle);
    size_t most = room > frame ? room - frame : 0;
    most = most < max ? most : max;
    size_t shown = len > most ? utf8_cut(text, most) : len;
    if (!shown && len) {
        bundle->is_truncated = true;
        bundle_format(bundle, "[left out: no room]\n");
        return;
    }
    bundle_format(bundle, "%s%s\n", fence, language);
    append(bundle, text, shown);
    bundle_format(bundle, "\n%s\n", fence);
    if (shown == len)
        return;
    bundle->is_truncated = true;
    bundle_format(bundle, "[cut after %zu of %zu bytes]\n", shown, len);
}

bool bundle_add_whole(struct bundle *bundle, const char *heading, const char *text, size_t len)
{
    if (strlen(heading) + len + 2 * MAX_FENCE + 100 > bundle_room(bundle)) {
        bundle->is_truncated = true;
        return false;
    }
    bundle_format(bundle, "\n### %s\n\n", heading);
    bundle_add_fenced(bundle, "", text, len, len);
    return true;
}
