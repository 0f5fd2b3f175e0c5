#include "api/auth/fetch.h"
#include "controller/curl_library.h"
#include "controller/base/cleanup.h"

static size_t take_bytes(char *bytes, size_t size, size_t count, void *arg)
{
    struct buffer *text = arg;
    return buffer_append(text, bytes, size * count) < 0 ? 0 : size * count; // too much: the transfer ends
}

static void set_options(const struct curl_library *curl, CURL *easy, const char *url, int timeout_ms, struct buffer *text)
{
    bool is_https = url[4] == 's';
    curl->easy_setopt(easy, CURLOPT_URL, url);
    curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, is_https ? "https" : "http");
    curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl->easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)timeout_ms / 2);
    curl->easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)text->max);
    curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl->easy_setopt(easy, CURLOPT_WRITEDATA, text);
    curl->easy_setopt(easy, CURLOPT_USERAGENT, "chat2shell/" CHAT2SHELL_VERSION);
    if (!is_https)
        curl->easy_setopt(easy, CURLOPT_PROXY, ""); // loopback: nobody in between
}

static int judge(const struct curl_library *curl, CURL *easy, CURLcode code, const struct buffer *text, struct error *err)
{
    long status = 0;
    if (text->is_over || code == CURLE_FILESIZE_EXCEEDED)
        return error_set(err, ERROR_TOO_LARGE, NULL, "the document is larger than %zu bytes", text->max);
    if (code != CURLE_OK)
        return error_set(err, ERROR_UNREACHABLE, "is the URL right, and can this machine reach it?", "%s", curl->easy_strerror(code));
    curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
        return error_set(err, ERROR_UNREACHABLE, "is the URL right?", "the server answered with HTTP status %ld", status);
    return 0;
}

int fetch_text(const char *url, int timeout_ms, struct buffer *text, struct error *err)
{
    const struct curl_library *curl = curl_library_get(err);
    if (!curl)
        return -1;
    CURL *easy = curl->easy_init();
    if (!easy)
        return error_set(err, ERROR_UNSUPPORTED, NULL, "libcurl cannot begin a transfer");
    set_options(curl, easy, url, timeout_ms, text);
    CURLcode code = curl->easy_perform(easy);
    int r = judge(curl, easy, code, text, err);
    curl->easy_cleanup(easy);
    return r;
}
