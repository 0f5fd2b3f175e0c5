#include "reconcilers/session/journal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include "controller/clock.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct entry {
    STAILQ_ENTRY(entry) link;
    int64_t position;
    struct wall_time at;
    enum journal_source source;
    int exit_code;
    int64_t duration_us;
    size_t size;
    char *text, *caller, *tool, *result; // in the same piece of memory; NULL: not said
};
struct journal {
    TAILQ_ENTRY(journal) link;
    char *uid, *name;
    STAILQ_HEAD(, entry) entries;
    size_t count, bytes;
    int64_t newest[JOURNAL_SOURCE_COUNT]; // positions
    int64_t dropped_to;                   // the newest position that is gone
    bool is_ended;                        // its record was removed
    struct boot_time ended;
};
struct journal_wait {
    TAILQ_ENTRY(journal_wait) link;
    char *uid;
    int64_t after;
    unsigned sources;
    void (*fn)(void *arg);
    void *arg;
};
struct journals {
    struct loop *loop;
    pthread_mutex_t lock; // guards what follows
    TAILQ_HEAD(journal_list, journal) all;    // in the order in which they began
    size_t count, bytes;
    int64_t position;
    size_t wait_count;
    bool is_posted;
    // Loop thread only
    TAILQ_HEAD(, journal_wait) waits;
    struct loop_timer *sweep;
};

static struct journal *find(struct journals *journals, const char *uid)
{
    struct journal *journal;
    TAILQ_FOREACH(journal, &journals->all, link)
        if (strcmp(journal->uid, uid) == 0)
            return journal;
    return NULL;
}

// ---- entries: under the lock ----------------------------------------------------------------------------------------------
static void drop_oldest(struct journals *journals, struct journal *journal)
{
    struct entry *entry = STAILQ_FIRST(&journal->entries);
    STAILQ_REMOVE_HEAD(&journal->entries, link);
    journal->dropped_to = entry->position;
    journal->count--;
    journal->bytes -= entry->size;
    journals->bytes -= entry->size;
    explicit_bzero(entry, entry->size);
    free(entry);
}

static void drop_journal(struct journals *journals, struct journal *journal)
{
    while (!STAILQ_EMPTY(&journal->entries))
        drop_oldest(journals, journal);
    TAILQ_REMOVE(&journals->all, journal, link);
    journals->count--;
    free(journal->uid);
    free(journal->name);
    free(journal);
}

// Whose oldest line goes when all together hold too much: a removed sandbox's, else the one's that holds most.
static struct journal *pick_victim(struct journals *journals)
{
    struct journal *journal, *victim = NULL;
    TAILQ_FOREACH(journal, &journals->all, link)
        if (journal->count && (!victim || (journal->is_ended && !victim->is_ended) || (journal->is_ended == victim->is_ended && journal->bytes > victim->bytes)))
            victim = journal;
    return victim;
}

static void make_room(struct journals *journals, struct journal *journal)
{
    while (journal->count > JOURNAL_MAX_LINES || journal->bytes > JOURNAL_MAX_BYTES)
        drop_oldest(journals, journal);
    while (journals->bytes > JOURNALS_MAX_BYTES)
        drop_oldest(journals, pick_victim(journals));
}

static size_t text_len(const char *text)
{
    size_t len = text ? strnlen(text, JOURNAL_TEXT_BYTES) : 0;
    return len < JOURNAL_TEXT_BYTES ? len : utf8_cut(text, len);
}

static char *put_text(char **at, const char *text)
{
    size_t len = text_len(text);
    if (!text)
        return NULL;
    char *copy = *at;
    memcpy(copy, text, len);
    copy[len] = '\0';
    *at += len + 1;
    return copy;
}

static struct entry *entry_new(const struct journal_line *line)
{
    size_t size = sizeof(struct entry) + text_len(line->text) + text_len(line->caller) + text_len(line->tool) + text_len(line->result) + 4;
    struct entry *entry = mem_alloc(size);
    char *at = (char *)(entry + 1);
    *entry = (struct entry){.source = line->source, .exit_code = line->exit_code, .duration_us = line->duration_us, .size = size};
    entry->text = put_text(&at, line->text);
    entry->caller = put_text(&at, line->caller);
    entry->tool = put_text(&at, line->tool);
    entry->result = put_text(&at, line->result);
    return entry;
}

// ---- waiting --------------------------------------------------------------------------------------------------------------
static bool is_due(struct journals *journals, const struct journal_wait *wait)
{
    const struct journal *journal = find(journals, wait->uid);
    bool is_over = !journal || journal->is_ended;
    for (int source = 0; journal && source < JOURNAL_SOURCE_COUNT; source++)
        is_over = is_over || ((wait->sources & 1u << source) && journal->newest[source] > wait->after);
    return is_over;
}

static void wait_free(struct journals *journals, struct journal_wait *wait)
{
    TAILQ_REMOVE(&journals->waits, wait, link);
    pthread_mutex_lock(&journals->lock);
    journals->wait_count--;
    pthread_mutex_unlock(&journals->lock);
    free(wait->uid);
    free(wait);
}

static struct journal_wait *take_due(struct journals *journals)
{
    struct journal_wait *wait;
    pthread_mutex_lock(&journals->lock);
    TAILQ_FOREACH(wait, &journals->waits, link)
        if (is_due(journals, wait))
            break;
    pthread_mutex_unlock(&journals->lock);
    return wait;
}

static void run_waits(void *arg)
{
    struct journals *journals = arg;
    struct journal_wait *wait;
    pthread_mutex_lock(&journals->lock);
    journals->is_posted = false;
    pthread_mutex_unlock(&journals->lock);
    while ((wait = take_due(journals))) {
        void (*fn)(void *arg) = wait->fn;
        void *its_arg = wait->arg;
        wait_free(journals, wait);
        fn(its_arg);
    }
}

// Under the lock.
static void wake(struct journals *journals)
{
    if (!journals->wait_count || journals->is_posted)
        return;
    journals->is_posted = true;
    loop_post(journals->loop, run_waits, journals);
}

struct journal_wait *journals_wait(struct journals *journals, const char *uid, int64_t after, unsigned sources, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&journals->lock);
    bool is_there = find(journals, uid) != NULL;
    struct journal_wait *wait = NULL;
    if (is_there) {
        wait = mem_alloc(sizeof(*wait));
        *wait = (struct journal_wait){.uid = mem_strdup(uid), .after = after, .sources = sources, .fn = fn, .arg = arg};
        TAILQ_INSERT_TAIL(&journals->waits, wait, link);
        journals->wait_count++;
        wake(journals); // it may be due already
    }
    pthread_mutex_unlock(&journals->lock);
    return wait;
}

void journals_wait_cancel(struct journals *journals, struct journal_wait *wait)
{
    wait_free(journals, wait);
}

// ---- life -----------------------------------------------------------------------------------------------------------------
struct journals *journals_new(struct loop *loop)
{
    struct journals *journals = mem_alloc(sizeof(*journals));
    journals->loop = loop;
    pthread_mutex_init(&journals->lock, NULL);
    TAILQ_INIT(&journals->all);
    TAILQ_INIT(&journals->waits);
    return journals;
}

void journals_free(struct journals *journals)
{
    if (!journals)
        return;
    loop_cancel(journals->sweep);
    while (!TAILQ_EMPTY(&journals->waits))
        wait_free(journals, TAILQ_FIRST(&journals->waits));
    while (!TAILQ_EMPTY(&journals->all))
        drop_journal(journals, TAILQ_FIRST(&journals->all));
    pthread_mutex_destroy(&journals->lock);
    free(journals);
}

// One that may go: of a removed sandbox the oldest, else the oldest.
static struct journal *pick_oldest(struct journals *journals)
{
    struct journal *journal;
    TAILQ_FOREACH(journal, &journals->all, link)
        if (journal->is_ended)
            return journal;
    return TAILQ_FIRST(&journals->all);
}

void journals_begin(struct journals *journals, const char *uid, const char *name)
{
    pthread_mutex_lock(&journals->lock);
    if (!find(journals, uid)) {
        if (journals->count >= JOURNALS_MAX)
            drop_journal(journals, pick_oldest(journals));
        struct journal *journal = mem_alloc(sizeof(*journal));
        *journal = (struct journal){.uid = mem_strdup(uid), .name = mem_strdup(name)};
        STAILQ_INIT(&journal->entries);
        TAILQ_INSERT_TAIL(&journals->all, journal, link);
        journals->count++;
    }
    pthread_mutex_unlock(&journals->lock);
}

void journals_add(struct journals *journals, const char *uid, const struct journal_line *line)
{
    struct entry *entry = entry_new(line);
    entry->at = clock_wall(loop_clock(journals->loop));
    pthread_mutex_lock(&journals->lock);
    struct journal *journal = find(journals, uid);
    if (journal) {
        entry->position = journal->newest[line->source] = ++journals->position;
        STAILQ_INSERT_TAIL(&journal->entries, entry, link);
        journal->count++;
        journal->bytes += entry->size;
        journals->bytes += entry->size;
        entry = NULL;
        make_room(journals, journal);
        wake(journals);
    }
    pthread_mutex_unlock(&journals->lock);
    free(entry);
}

// ---- the end: one timer, only while an ended journal is kept ------------------------------------------------------------------
static void arm_sweep(void *arg);

static void sweep(void *arg)
{
    struct journals *journals = arg;
    struct journal *journal, *next;
    journals->sweep = NULL;
    int64_t now = clock_boot(loop_clock(journals->loop)).ms;
    pthread_mutex_lock(&journals->lock);
    for (journal = TAILQ_FIRST(&journals->all); journal; journal = next) {
        next = TAILQ_NEXT(journal, link);
        if (journal->is_ended && now - journal->ended.ms >= JOURNAL_KEPT_MS)
            drop_journal(journals, journal);
    }
    pthread_mutex_unlock(&journals->lock);
    arm_sweep(journals);
}

static void arm_sweep(void *arg)
{
    struct journals *journals = arg;
    struct journal *journal;
    int64_t first = INT64_MAX, now = clock_boot(loop_clock(journals->loop)).ms;
    pthread_mutex_lock(&journals->lock);
    TAILQ_FOREACH(journal, &journals->all, link)
        if (journal->is_ended && journal->ended.ms < first)
            first = journal->ended.ms;
    pthread_mutex_unlock(&journals->lock);
    if (first != INT64_MAX && !journals->sweep)
        journals->sweep = loop_after(journals->loop, first + JOURNAL_KEPT_MS - now, sweep, journals);
}

void journals_end(struct journals *journals, const char *uid)
{
    pthread_mutex_lock(&journals->lock);
    struct journal *journal = find(journals, uid);
    bool is_news = journal && !journal->is_ended;
    if (is_news) {
        journal->is_ended = true;
        journal->ended = clock_boot(loop_clock(journals->loop));
        wake(journals);
    }
    pthread_mutex_unlock(&journals->lock);
    if (is_news)
        loop_post(journals->loop, arm_sweep, journals);
}

// ---- reading ------------------------------------------------------------------------------------------------------------------
bool journals_find(struct journals *journals, const char *name_or_uid, char **ret_uid)
{
    struct journal *journal, *found = NULL;
    pthread_mutex_lock(&journals->lock);
    TAILQ_FOREACH(journal, &journals->all, link)
        if (strcmp(journal->uid, name_or_uid) == 0 || strcmp(journal->name, name_or_uid) == 0)
            found = journal; // the last one is the newest
    if (found)
        *ret_uid = mem_strdup(found->uid);
    pthread_mutex_unlock(&journals->lock);
    return found != NULL;
}

static bool is_wanted(const struct entry *entry, const struct journal_query *query)
{
    return entry->position > query->after && entry->at.ms >= query->since_ms && (query->sources & 1u << entry->source);
}

static json_t *entry_to_json(const struct entry *entry)
{
    static const char *const sources[] = {[JOURNAL_CALL] = "call", [JOURNAL_SERVER] = "server"};
    json_t *line = json_object();
    json_object_set_new(line, "timeMs", json_integer(entry->at.ms));
    json_set_text(line, "source", sources[entry->source]);
    json_set_text(line, "caller", entry->caller);
    json_set_text(line, "tool", entry->tool);
    json_set_text(line, "text", entry->text);
    if (entry->source != JOURNAL_CALL)
        return line;
    json_set_text(line, "result", entry->result);
    if (entry->exit_code >= 0)
        json_object_set_new(line, "exitCode", json_integer(entry->exit_code));
    json_object_set_new(line, "durationMs", json_real((double)(entry->duration_us / 100) / 10));
    return line;
}

// How many of those that fit are before the tail.
static int64_t count_before_tail(const struct journal *journal, const struct journal_query *query)
{
    int64_t count = 0;
    const struct entry *entry;
    if (query->tail < 0)
        return 0;
    STAILQ_FOREACH(entry, &journal->entries, link)
        count += is_wanted(entry, query);
    return count > query->tail ? count - query->tail : 0;
}

static void read_entries(const struct journal *journal, const struct journal_query *query, struct journal_view *view)
{
    const struct entry *entry;
    int64_t skip = count_before_tail(journal, query);
    size_t bytes = 0;
    STAILQ_FOREACH(entry, &journal->entries, link) {
        if (!is_wanted(entry, query) || skip-- > 0)
            continue;
        if (bytes > query->max_bytes) {
            view->has_more = true;
            return;
        }
        bytes += entry->size;
        json_array_append_new(view->lines, entry_to_json(entry));
        view->position = entry->position;
    }
}

bool journals_read(struct journals *journals, const char *uid, const struct journal_query *query, struct journal_view *ret)
{
    pthread_mutex_lock(&journals->lock);
    const struct journal *journal = find(journals, uid);
    if (journal) {
        struct journal_view view = {.lines = json_array(), .position = query->after, .is_over = journal->is_ended,
                                    .has_gap = query->after && query->after < journal->dropped_to};
        read_entries(journal, query, &view);
        if (!view.has_more && journals->position > view.position)
            view.position = journals->position; // what did not fit is not looked at again
        *ret = view;
    }
    pthread_mutex_unlock(&journals->lock);
    return journal != NULL;
}
