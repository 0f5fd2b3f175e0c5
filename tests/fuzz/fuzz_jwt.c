// An access token: as it comes, or (where the input has a line end) header and claims in two lines, which are put into one
// here; its signature counts as good. Whatever comes: a refusal in a sentence, or a caller for the right issuer and audience
// whose principal can be shown.
#include "api/auth/base64url.h"
#include "api/auth/jwt.h"
#include "controller/base/buffer.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

bool jwk_verify(const struct jwk *key, enum jwk_algorithm algorithm, const void *text, size_t text_len, const void *signature, size_t signature_len)
{
    (void)key, (void)text, (void)signature;
    fuzz_expect(algorithm != JWK_NO_ALGORITHM && text_len && signature_len, "something signed is checked");
    return true;
}

static void append_part(struct buffer *token, const char *bytes, size_t len)
{
    CLEANUP_JSON json_t *coded = json_encode_base64(bytes, len);
    const char *text = json_string_value(coded);
    for (size_t i = 0; text[i] && text[i] != '='; i++)
        buffer_append_char(token, text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i]);
}

static void append_token(struct buffer *token, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    if (!end) {
        buffer_append(token, bytes, len);
        return;
    }
    append_part(token, bytes, (size_t)(end - bytes));
    buffer_append_char(token, '.');
    append_part(token, end + 1, len - (size_t)(end + 1 - bytes));
    buffer_append(token, ".AAAA", 5);
}

static void check_caller(const struct caller *caller)
{
    size_t len = strnlen(caller->principal, sizeof(caller->principal));
    fuzz_expect(len < sizeof(caller->principal) && strncmp(caller->principal, "mcp:oauth:", 10) == 0 && len > 10, "a principal names its kind and somebody");
    for (size_t i = 0; i < len; i++)
        fuzz_expect(caller->principal[i] > ' ' && caller->principal[i] < 0x7f, "a principal can be shown");
}

// One value has one spelling.
static void check_coding(const char *text, size_t len)
{
    CLEANUP_FREE unsigned char *bytes = mem_alloc(BASE64URL_DECODED_MAX(len) + 1);
    size_t bytes_len;
    if (base64url_decode(text, len, bytes, &bytes_len) < 0)
        return;
    struct buffer again = BUFFER_INIT(1 << 20);
    append_part(&again, (const char *)bytes, bytes_len);
    fuzz_expect(again.len == len && memcmp(buffer_text(&again), text, len) == 0, "base64url is decoded to what it was coded from");
    buffer_free(&again);
}

static void read_token(const char *text, size_t len)
{
    static const struct jwt_rules rules = {"https://login.example", "https://box.example/mcp"};
    CLEANUP(jwt_clear) struct jwt jwt = {0};
    struct error err = ERROR_INIT;
    struct caller caller = {0};
    if (jwt_read(text, len, &jwt, &err) < 0) {
        fuzz_expect(err.code == ERROR_REFUSED && err.message[0], "a refusal is a sentence");
        return;
    }
    fuzz_expect(jwt.signed_len < len && jwt.payload > text && jwt.payload + jwt.payload_len == text + jwt.signed_len && jwt.signature_len, "a token has its three parts");
    if (jwt_check(&jwt, NULL, &rules, (struct wall_time){1750000000000}, &caller, &err) == 0)
        check_caller(&caller);
    else
        fuzz_expect(err.code == ERROR_REFUSED && err.message[0] && !caller.principal[0], "a refusal is a sentence, and nobody is let in");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct buffer token = BUFFER_INIT(1 << 20);
    append_token(&token, (const char *)bytes, len);
    CLEANUP_FREE char *exact = mem_alloc(token.len + !token.len); // exactly as long, so that a step beyond it is seen
    memcpy(exact, buffer_text(&token), token.len);
    read_token(exact, token.len);
    check_coding(exact, token.len);
    buffer_free(&token);
    return 0;
}
