#include "api/auth/keys.h"
#include "api/auth/fetch.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/log.h"
#include "controller/thread.h"
#include <errno.h>
#include <string.h>

struct file_mark { // tells one content of a file from the next
    int64_t device, inode, size, changed_s, changed_ns;
};

struct key_source {
    char *where;
    bool is_url;
    struct clock *clock;
    pthread_mutex_t lock; // guards the rest
    struct jwk_set *set;  // NULL: none yet
    struct boot_time fetched_at, looked_at; // begin of the last fetch; last look at the file
    struct file_mark mark;
    bool is_fetching, is_stopping;
    bool has_thread; // thread is to be joined
    pthread_t thread;
};

// ---- reading ------------------------------------------------------------------------------------------------
static bool look_at_file(const char *path, struct file_mark *ret)
{
    struct stat info;
    if (stat(path, &info) < 0)
        return false;
    *ret = (struct file_mark){(int64_t)info.st_dev, (int64_t)info.st_ino, (int64_t)info.st_size, (int64_t)info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
    return true;
}

static int read_file(const char *path, struct buffer *text, struct error *err)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0)
        return error_errno(err, errno, "put the key set there, or name another file in CHAT2SHELL_OAUTH_JWKS", "cannot open %s", path);
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return error_set(err, ERROR_INVALID, "name a file with a key set, or its https URL, in CHAT2SHELL_OAUTH_JWKS", "%s is not a file", path);
    // Whoever writes it decides who may use the endpoint.
    if (info.st_mode & 022 || (info.st_uid != geteuid() && info.st_uid != 0))
        return error_set(err, ERROR_REFUSED, "chown it to the user of the daemon, and chmod go-w it", "%s may be written by others", path);
    return fs_read_all(fd, text, err);
}

static int parse_set(const struct key_source *source, struct buffer *text, struct jwk_set **ret, struct error *err)
{
    if (jwk_set_parse(buffer_text(text), text->len, ret, err) == 0)
        return 0;
    error_hint(err, "CHAT2SHELL_OAUTH_JWKS must name a JSON Web Key Set: {\"keys\": [...]}");
    return error_context(err, "%s", source->where);
}

static int read_set(const struct key_source *source, struct jwk_set **ret, struct error *err)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(KEYS_TEXT_MAX_BYTES);
    int r = source->is_url ? fetch_text(source->where, KEYS_FETCH_MS, &text, err) : read_file(source->where, &text, err);
    if (r == 0)
        r = parse_set(source, &text, ret, err);
    return r < 0 ? error_context(err, "the keys of the authorization server") : 0;
}

static void *run(void *arg)
{
    struct key_source *source = arg;
    struct jwk_set *set = NULL;
    struct error err = ERROR_INIT;
    if (read_set(source, &set, &err) < 0)
        log_warning("%s; those that were read before stay", err.message);
    pthread_mutex_lock(&source->lock);
    struct jwk_set *old = set ? source->set : NULL;
    if (set)
        source->set = set;
    source->is_fetching = false;
    pthread_mutex_unlock(&source->lock);
    jwk_set_unref(old);
    return NULL;
}

// Holding the lock. The thread before has ended but for its return: joining it takes no time.
static void begin_fetch(struct key_source *source)
{
    struct error err = ERROR_INIT;
    if (source->is_fetching || source->is_stopping)
        return;
    if (source->has_thread)
        pthread_join(source->thread, NULL);
    source->fetched_at = clock_boot(source->clock);
    source->is_fetching = source->has_thread = thread_start(&source->thread, "keys", run, source, &err) == 0;
    if (!source->is_fetching)
        log_warning("the keys of the authorization server cannot be fetched: %s", err.message);
}

// ---- looking for a key ----------------------------------------------------------------------------------------
static void look_for_change(struct key_source *source, struct boot_time now)
{
    struct file_mark mark;
    if (now.ms - source->looked_at.ms < KEYS_FILE_LOOK_MS)
        return;
    source->looked_at = now;
    if (!look_at_file(source->where, &mark) || memcmp(&mark, &source->mark, sizeof(mark)) == 0)
        return;
    source->mark = mark;
    begin_fetch(source);
}

static void refresh(struct key_source *source, bool is_missing)
{
    struct boot_time now = clock_boot(source->clock);
    int64_t age = now.ms - source->fetched_at.ms;
    if (!source->is_url)
        look_for_change(source, now);
    else if (age >= (!source->set ? KEYS_FIRST_REFETCH_MS : is_missing ? KEYS_REFETCH_MIN_MS : KEYS_FRESH_MS))
        begin_fetch(source);
}

enum key_answer key_source_find(struct key_source *source, const char *key_id, enum jwk_algorithm algorithm, struct jwk_set **ret_set,
                                const struct jwk **ret)
{
    pthread_mutex_lock(&source->lock);
    const struct jwk *key = source->set ? jwk_set_find(source->set, key_id, algorithm) : NULL;
    refresh(source, !key);
    enum key_answer answer = key ? KEYS_FOUND : source->is_fetching || !source->set ? KEYS_PENDING : KEYS_NONE;
    if (key) {
        *ret_set = jwk_set_ref(source->set);
        *ret = key;
    }
    pthread_mutex_unlock(&source->lock);
    return answer;
}

// ---- life -----------------------------------------------------------------------------------------------------
static int read_first(struct key_source *source, struct error *err)
{
    if (!source->is_url) {
        look_at_file(source->where, &source->mark);
        return read_set(source, &source->set, err);
    }
    pthread_mutex_lock(&source->lock);
    begin_fetch(source);
    pthread_mutex_unlock(&source->lock);
    return 0;
}

int key_source_start(const char *where, struct clock *clock, struct key_source **ret, struct error *err)
{
    struct key_source *source = mem_alloc(sizeof(*source));
    source->where = mem_strdup(where);
    source->is_url = where[0] != '/';
    source->clock = clock;
    pthread_mutex_init(&source->lock, NULL);
    if (read_first(source, err) < 0)
        return key_source_stop(source), -1;
    *ret = source;
    return 0;
}

void key_source_stop(struct key_source *source)
{
    if (!source)
        return;
    pthread_mutex_lock(&source->lock);
    source->is_stopping = true;
    pthread_mutex_unlock(&source->lock);
    if (source->has_thread)
        pthread_join(source->thread, NULL);
    jwk_set_unref(source->set);
    pthread_mutex_destroy(&source->lock);
    free(source->where);
    free(source);
}
