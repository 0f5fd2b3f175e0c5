#include "api/mcp/jsonrpc_scan.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <math.h>
#include <string.h>

_Static_assert(JSON_MAX_DEPTH == 64 && JSONRPC_VALUES_MAX == 100000 && JSONRPC_NUMBER_MAX_CHARACTERS == 1024,
               "the sentences below name these limits");

// Where in a message the reader is; what each key leads to is a row of the table.
enum place {
    PLACE_TEXT, // the whole: a message, or an array of them
    PLACE_MESSAGE,
    PLACE_PARAMS,
    PLACE_META,
    PLACE_ID,
    PLACE_REQUEST_ID,
    PLACE_PROGRESS_TOKEN,
    PLACE_ELSEWHERE
};
static const struct {
    enum place in;
    const char *key;
    enum place leads_to;
} paths[] = {
    {PLACE_MESSAGE, "id", PLACE_ID},
    {PLACE_MESSAGE, "params", PLACE_PARAMS},
    {PLACE_PARAMS, "requestId", PLACE_REQUEST_ID},
    {PLACE_PARAMS, "_meta", PLACE_META},
    {PLACE_META, "progressToken", PLACE_PROGRESS_TOKEN},
};

static int part_at(enum place place)
{
    static const int parts[] = {[PLACE_ID] = JSONRPC_PART_ID + 1,
                                [PLACE_REQUEST_ID] = JSONRPC_PART_REQUEST_ID + 1,
                                [PLACE_PROGRESS_TOKEN] = JSONRPC_PART_PROGRESS_TOKEN + 1,
                                [PLACE_ELSEWHERE] = 0};
    return parts[place] - 1;
}

static void break_limit(struct jsonrpc_scan *scan, const char *sentence)
{
    if (!scan->limit)
        scan->limit = sentence;
}

static char peek(const struct jsonrpc_scan *scan)
{
    return scan->at < scan->len ? scan->bytes[scan->at] : '\0';
}

static bool take(struct jsonrpc_scan *scan, char c)
{
    if (scan->at >= scan->len || scan->bytes[scan->at] != c)
        return false;
    scan->at++;
    return true;
}

static void skip_blanks(struct jsonrpc_scan *scan)
{
    while (scan->at < scan->len && strchr(" \t\r\n", scan->bytes[scan->at]) && scan->bytes[scan->at])
        scan->at++;
}

// ---- numbers ----------------------------------------------------------------------------------------------
static bool skip_digits(struct jsonrpc_scan *scan)
{
    size_t start = scan->at;
    while (peek(scan) >= '0' && peek(scan) <= '9')
        scan->at++;
    return scan->at > start;
}

static bool skip_fraction_and_exponent(struct jsonrpc_scan *scan)
{
    if (take(scan, '.') && !skip_digits(scan))
        return false;
    if (!take(scan, 'e') && !take(scan, 'E'))
        return true;
    if (!take(scan, '+'))
        take(scan, '-');
    return skip_digits(scan);
}

static char *patch_at(struct jsonrpc_scan *scan, size_t at)
{
    if (!scan->patched) {
        scan->patched = mem_realloc(NULL, scan->len + 1);
        memcpy(scan->patched, scan->bytes, scan->len);
        scan->patched[scan->len] = '\0';
    }
    return scan->patched + at;
}

static bool fits_integer(const char *number)
{
    errno = 0;
    strtoll(number, NULL, 10);
    return errno != ERANGE;
}

static void judge_number(struct jsonrpc_scan *scan, size_t start, bool is_integer, bool is_part)
{
    size_t len = scan->at - start;
    const char *number = scan->bytes + start;
    if (len > JSONRPC_NUMBER_MAX_CHARACTERS) {
        break_limit(scan, "the message holds a number of more than 1024 characters");
    } else if (is_integer && fits_integer(number)) {
        return;
    } else if (is_integer &&
               is_part) { // its raw text is what counts; the parser only needs some number there
        memset(patch_at(scan, start), ' ', len);
        *patch_at(scan, start) = '0';
    } else if (isinf(strtod(number, NULL))) {
        break_limit(scan, "the message holds a number that is too large for a 64-bit float");
    } else if (is_integer) {
        memcpy(patch_at(scan, start + len - 2), "e2", 2);
    }
}

static bool scan_number(struct jsonrpc_scan *scan, bool is_part)
{
    size_t start = scan->at;
    take(scan, '-');
    bool is_zero = take(scan, '0');
    if (is_zero == skip_digits(scan)) // neither, or digits behind a leading zero: then what strtoll reads were not this number
        return false;
    size_t integer_end = scan->at;
    if (!skip_fraction_and_exponent(scan))
        return false;
    judge_number(scan, start, scan->at == integer_end, is_part);
    return true;
}

// ---- strings ----------------------------------------------------------------------------------------------
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The code unit of the four digits at scan->at, which it passes; -1 if they are none.
static int take_code_unit(struct jsonrpc_scan *scan)
{
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(peek(scan));
        if (digit < 0)
            return -1;
        unit = unit * 16 + digit;
        scan->at++;
    }
    return unit;
}

struct string_marks {
    bool has_nul, has_half; // U+0000; half of a surrogate pair
};

static bool scan_unicode_escape(struct jsonrpc_scan *scan, struct string_marks *marks)
{
    int unit = take_code_unit(scan);
    if (unit < 0)
        return false;
    marks->has_nul |= unit == 0;
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    size_t behind = scan->at;
    if (unit < 0xDC00 && take(scan, '\\') && take(scan, 'u')) {
        int second = take_code_unit(scan);
        if (second >= 0xDC00 && second <= 0xDFFF)
            return true;
    }
    scan->at = behind; // what follows is read for itself
    marks->has_half = true;
    return true;
}

static bool scan_escape(struct jsonrpc_scan *scan, struct string_marks *marks)
{
    char c = peek(scan);
    if (!c || !strchr("\"\\/bfnrtu", c))
        return false;
    scan->at++;
    return c != 'u' || scan_unicode_escape(scan, marks);
}

static bool scan_string(struct jsonrpc_scan *scan, struct string_marks *marks)
{
    if (!take(scan, '"'))
        return false;
    size_t start = scan->at;
    bool is_ascii = true;
    while (scan->at < scan->len) {
        unsigned char c = (unsigned char)scan->bytes[scan->at];
        if (c == '"')
            break;
        if (c < 0x20)
            return false;
        is_ascii &= c < 0x80;
        scan->at++;
        if (c == '\\' && !scan_escape(scan, marks))
            return false;
    }
    size_t end = scan->at;
    if (!take(scan, '"'))
        return false;
    if (marks->has_half)
        break_limit(scan, "the message holds a string with half of a surrogate pair");
    if (is_ascii || utf8_is_valid(scan->bytes + start, end - start))
        return true;
    scan->at = start;
    return false;
}

// The character of a key at *at, which moves on: only ASCII matters, all else is -1.
static int next_key_character(const char *key, size_t len, size_t *at)
{
    static const char coded[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char c = key[(*at)++];
    if (c != '\\')
        return (unsigned char)c < 0x80 ? c : -1;
    c = key[(*at)++];
    if (c != 'u') {
        const char *found = strchr(coded, c);
        return found ? meant[found - coded] : c;
    }
    int unit = 0;
    for (int i = 0; i < 4 && *at < len; i++)
        unit = unit * 16 + hex_value(key[(*at)++]);
    return unit < 0x80 ? unit : -1;
}

// Whether a valid key (without its quotes), escapes and all, means this word.
static bool is_key(const char *key, size_t len, const char *word)
{
    size_t at = 0;
    for (; at < len && *word; word++)
        if (next_key_character(key, len, &at) != *word)
            return false;
    return at == len && !*word;
}

// ---- values -----------------------------------------------------------------------------------------------
static bool scan_value(struct jsonrpc_scan *scan, size_t depth, enum place place);

// Past the value's last bracket without a look at what stands between, for what is too deep anyway.
static bool skip_brackets(struct jsonrpc_scan *scan)
{
    struct string_marks marks = {0};
    size_t open = 0;
    while (scan->at < scan->len) {
        char c = scan->bytes[scan->at];
        if (c == '"') {
            if (!scan_string(scan, &marks))
                return false;
            continue;
        }
        scan->at++;
        if (c == '[' || c == '{')
            open++;
        else if ((c == ']' || c == '}') && --open == 0)
            return true;
    }
    return false;
}

static bool scan_element(struct jsonrpc_scan *scan, size_t depth, enum place place)
{
    if (place != PLACE_TEXT)
        return scan_value(scan, depth, PLACE_ELSEWHERE);
    size_t index = scan->message_count++;
    scan->found = index < JSONRPC_MESSAGES_MAX ? &scan->messages[index] : NULL;
    return scan_value(scan, depth, PLACE_MESSAGE);
}

static bool scan_array(struct jsonrpc_scan *scan, size_t depth, enum place place)
{
    take(scan, '[');
    skip_blanks(scan);
    if (take(scan, ']'))
        return true;
    do
        if (!scan_element(scan, depth + 1, place))
            return false;
    while (take(scan, ','));
    return take(scan, ']');
}

static enum place place_below(enum place place, const char *key, size_t len)
{
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (paths[i].in == place && is_key(key, len, paths[i].key))
            return paths[i].leads_to;
    return PLACE_ELSEWHERE;
}

static bool scan_member(struct jsonrpc_scan *scan, size_t depth, enum place place)
{
    struct string_marks marks = {0};
    skip_blanks(scan);
    size_t start = scan->at;
    if (!scan_string(scan, &marks))
        return false;
    enum place below = place_below(place, scan->bytes + start + 1, scan->at - start - 2);
    if (marks.has_nul)
        break_limit(scan, "the message holds a key with a NUL character");
    skip_blanks(scan);
    return take(scan, ':') && scan_value(scan, depth, below);
}

static bool scan_object(struct jsonrpc_scan *scan, size_t depth, enum place place)
{
    take(scan, '{');
    skip_blanks(scan);
    if (take(scan, '}'))
        return true;
    do
        if (!scan_member(scan, depth + 1, place))
            return false;
    while (take(scan, ','));
    return take(scan, '}');
}

static bool scan_word(struct jsonrpc_scan *scan)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);
        if (scan->len - scan->at >= len && memcmp(scan->bytes + scan->at, words[i], len) == 0) {
            scan->at += len;
            return true;
        }
    }
    return false;
}

static bool scan_one(struct jsonrpc_scan *scan, size_t depth, enum place place, struct string_marks *marks)
{
    char c = peek(scan);
    if ((c == '{' || c == '[') && depth >= JSON_MAX_DEPTH) {
        break_limit(scan, "the message is nested deeper than 64 levels");
        return skip_brackets(scan);
    }
    if (c == '{')
        return scan_object(scan, depth, place == PLACE_TEXT ? PLACE_MESSAGE : place);
    if (c == '[')
        return scan_array(scan, depth, place);
    if (c == '"')
        return scan_string(scan, marks);
    return c == '-' || (c >= '0' && c <= '9') ? scan_number(scan, part_at(place) >= 0) : scan_word(scan);
}

static void note(struct jsonrpc_scan *scan, enum place place, size_t start, bool is_unfit)
{
    int part = part_at(place);
    if (part < 0 || !scan->found)
        return;
    struct jsonrpc_slice *slice = &scan->found->parts[part];
    *slice = (struct jsonrpc_slice){
        .at = start, .len = scan->at - start, .times = slice->times + 1, .is_unfit = is_unfit};
}

static bool scan_value(struct jsonrpc_scan *scan, size_t depth, enum place place)
{
    struct string_marks marks = {0};
    skip_blanks(scan);
    size_t start = scan->at;
    if (++scan->value_count > JSONRPC_VALUES_MAX)
        break_limit(scan, "the message holds more than 100000 values");
    if (!scan_one(scan, depth, place, &marks))
        return false;
    note(scan, place, start, marks.has_half);
    skip_blanks(scan);
    return true;
}

bool jsonrpc_scan(struct jsonrpc_scan *scan, const char *bytes, size_t len)
{
    *scan = (struct jsonrpc_scan){.bytes = bytes, .len = len, .found = &scan->messages[0]};
    skip_blanks(scan);
    scan->is_batch = peek(scan) == '[';
    bool is_json = scan_value(scan, 0, PLACE_TEXT) && scan->at == len;
    if (!scan->is_batch)
        scan->message_count = 1;
    return is_json;
}

void jsonrpc_scan_clear(struct jsonrpc_scan *scan)
{
    free(scan->patched);
    scan->patched = NULL;
}
