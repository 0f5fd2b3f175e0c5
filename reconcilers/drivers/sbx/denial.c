// No sandbox may reach openrouter.ai or anything below it: create asks for that, and here it is confirmed. A pattern for the
// subdomains does not cover the domain in every version, so both rules must stand. What is not confirmed by the first look is
// asked for again with `policy deny`, for this sandbox alone, and looked at once more.
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"

const char *const sbx_denied_hosts[] = {"openrouter.ai", "**.openrouter.ai", NULL};

struct denial {
    struct sbx *sbx;
    char *name;
    bool has_asked_again, is_cancelled;
    struct call *call;
    void (*done)(void *arg, const struct error *err);
    void *arg;
};

static void look(struct denial *denial);

static void finish(struct denial *denial, const struct error *err)
{
    if (!denial->is_cancelled)
        denial->done(denial->arg, err);
    free(denial->name);
    free(denial);
}

static const char *first_missing(const struct denial *denial, const json_t *policy)
{
    for (size_t i = 0; sbx_denied_hosts[i]; i++)
        if (!sbx_policy_denies(policy, denial->name, sbx_denied_hosts[i]))
            return sbx_denied_hosts[i];
    return NULL;
}

static void on_asked_again(void *arg, const struct call_result *result)
{
    struct denial *denial = arg;
    struct error err = ERROR_INIT;
    denial->call = NULL;
    if (sbx_call_judge(result, &err) == 0 && !denial->is_cancelled) {
        look(denial);
        return;
    }
    error_context(&err, "the network denial of openrouter.ai cannot be set");
    finish(denial, &err);
}

static void ask_again(struct denial *denial)
{
    static const char *const texts[] = {"policy", "deny", "network", "--sandbox", NULL};
    struct call_options options = {.subject = denial->name, .deadline_ms = denial->sbx->deadlines.call_ms};
    sbx_words_add_all(&options.words, texts);
    sbx_words_add(&options.words, "%s", denial->name);
    sbx_words_add(&options.words, "%s,%s", sbx_denied_hosts[0], sbx_denied_hosts[1]);
    denial->has_asked_again = true;
    denial->call = sbx_call_start(denial->sbx, &options, on_asked_again, denial);
}

static void on_looked(void *arg, const struct call_result *result)
{
    struct denial *denial = arg;
    struct error err = ERROR_INIT;
    CLEANUP_JSON json_t *policy = NULL;
    denial->call = NULL;
    int read = sbx_call_json(result, &policy, &err);
    const char *missing = read == 0 ? first_missing(denial, policy) : NULL;
    if (denial->is_cancelled || (read == 0 && missing == NULL)) {
        finish(denial, NULL);
    } else if (read == 0 && !denial->has_asked_again) {
        ask_again(denial);
    } else {
        if (missing)
            error_set(&err, ERROR_UNAVAILABLE, "look at: sbx policy ls", "no active rule denies %s to the sandbox", missing);
        error_context(&err, "the network denial of openrouter.ai cannot be confirmed");
        finish(denial, &err);
    }
}

static void look(struct denial *denial)
{
    struct call_options options = {.subject = denial->name, .deadline_ms = denial->sbx->deadlines.call_ms};
    sbx_words_add(&options.words, "policy");
    sbx_words_add(&options.words, "ls");
    sbx_words_add(&options.words, "%s", denial->name);
    sbx_words_add(&options.words, "--json");
    denial->call = sbx_call_start(denial->sbx, &options, on_looked, denial);
}

struct denial *sbx_denial_confirm(struct sbx *sbx, const char *name, void (*done)(void *arg, const struct error *err), void *arg)
{
    struct denial *denial = mem_alloc(sizeof(*denial));
    *denial = (struct denial){.sbx = sbx, .name = mem_strdup(name), .done = done, .arg = arg};
    look(denial);
    return denial;
}

void sbx_denial_cancel(struct denial *denial)
{
    denial->is_cancelled = true;
    sbx_call_cancel(denial->call); // never NULL: the denial ends with its call
}
