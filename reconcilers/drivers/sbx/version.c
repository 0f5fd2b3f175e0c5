// The version of sbx and what depends on it. Asked once, shared by all who wait, and again after an odd failure.
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"
#include <string.h>

#define VERSION_DEADLINE_MS 10000

static const struct version minimum = {0, 38, 0};

static const struct {
    const char *flag;
    struct version since;
} features[FEATURE_COUNT] = {
    [FEATURE_DENY_NETWORK] = {"--deny-network", {0, 38, 0}}, // without it: `policy deny network --sandbox`
    [FEATURE_PUBLISH] = {"--publish", {0, 37, 0}},           // without it: `ports --publish`
    [FEATURE_SKILLS] = {"--skills", {0, 45, 0}},
    [FEATURE_PULL] = {"--pull", {0, 45, 0}},
};

struct version_waiter {
    struct version_waiter *next;
    version_fn done; // NULL: it left
    void *arg;
};

const char *sbx_version_flag(enum feature feature)
{
    return features[feature].flag;
}

bool sbx_version_has(const struct sbx *sbx, enum feature feature)
{
    return sbx_version_compare(&sbx->version, &features[feature].since) >= 0 && !sbx->is_refused[feature];
}

int sbx_version_check(const struct version *version, struct error *err)
{
    char has[VERSION_TEXT_SIZE], needs[VERSION_TEXT_SIZE];
    sbx_version_format(version, has);
    sbx_version_format(&minimum, needs);
    if (sbx_version_compare(version, &minimum) >= 0)
        return 0;
    return error_set(err, ERROR_UNSUPPORTED, "install a newer Docker Sandboxes", "sbx is version %s, and chat2shell needs %s or newer", has, needs);
}

void sbx_version_forget(struct sbx *sbx)
{
    sbx->version = (struct version){0};
}

bool sbx_version_drop_refused(struct sbx *sbx, const struct call_result *result)
{
    for (int i = 0; i < FEATURE_COUNT; i++)
        if (!sbx->is_refused[i] && sbx_call_says_unknown_flag(result, features[i].flag)) {
            sbx->is_refused[i] = true;
            return true;
        }
    return false;
}

static void answer_all(struct sbx *sbx, const struct version *version, const struct error *err)
{
    struct version_waiter *at = sbx->version_waiters;
    sbx->version_waiters = NULL;
    while (at) {
        struct version_waiter *next = at->next;
        if (at->done)
            at->done(at->arg, version, err);
        free(at);
        at = next;
    }
}

static void on_version(void *arg, const struct call_result *result)
{
    struct sbx *sbx = arg;
    struct error err = ERROR_INIT;
    struct version version;
    sbx->version_call = NULL;
    if (sbx_call_judge(result, &err) < 0) {
        answer_all(sbx, NULL, &err);
    } else if (sbx_version_parse(result->printed, &version, NULL) < 0 && sbx_version_parse(result->errors, &version, NULL) < 0) {
        error_set(&err, ERROR_UNAVAILABLE, "run: sbx version", "`sbx version` told no version");
        answer_all(sbx, NULL, &err);
    } else {
        memset(sbx->is_refused, 0, sizeof(sbx->is_refused));
        sbx->version = version;
        answer_all(sbx, &version, NULL);
    }
}

void sbx_version_ask(struct sbx *sbx, version_fn done, void *arg)
{
    if (sbx->version.major || sbx->version.minor) {
        struct version known = sbx->version;
        done(arg, &known, NULL);
        return;
    }
    struct version_waiter *waiter = mem_alloc(sizeof(*waiter));
    *waiter = (struct version_waiter){sbx->version_waiters, done, arg};
    sbx->version_waiters = waiter;
    if (sbx->version_call)
        return;
    struct call_options options = {.deadline_ms = VERSION_DEADLINE_MS};
    sbx_words_add(&options.words, "version");
    sbx->version_call = sbx_call_start(sbx, &options, on_version, sbx);
}

void sbx_version_leave(struct sbx *sbx, void *arg)
{
    for (struct version_waiter *at = sbx->version_waiters; at; at = at->next)
        if (at->arg == arg)
            at->done = NULL;
}
