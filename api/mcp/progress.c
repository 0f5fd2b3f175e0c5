#include "api/mcp/progress.h"
#include "controller/base/memory.h"

int64_t progress_due_ms(const struct progress *progress)
{
    int64_t next_ms = progress->next_ms ? progress->next_ms : PROGRESS_FIRST_MS;
    int64_t soonest_ms = progress->said_ms ? progress->said_ms + PROGRESS_PAUSE_MS : PROGRESS_FIRST_MS;
    return progress->has_news || next_ms < soonest_ms ? soonest_ms : next_ms;
}

static void plan_next(struct progress *progress, int64_t waited_ms)
{
    progress->has_news = false;
    if (waited_ms < progress->next_ms)
        return; // news came between
    if (!progress->gap_ms)
        progress->gap_ms = PROGRESS_FIRST_MS;
    progress->next_ms = waited_ms + progress->gap_ms;
    progress->gap_ms = progress->gap_ms * 2 < PROGRESS_GAP_MAX_MS ? progress->gap_ms * 2 : PROGRESS_GAP_MAX_MS;
}

char *progress_say(struct progress *progress, int64_t waited_ms, const char *token, const struct tool_progress *what)
{
    int64_t said_ms = waited_ms > progress->said_ms ? waited_ms : progress->said_ms + 1;
    progress->said_ms = said_ms;
    plan_next(progress, waited_ms);
    CLEANUP_JSON json_t *words = json_from_text(what->message);
    CLEANUP_FREE char *message = json_to_text(words);
    CLEANUP_FREE char *total = what->total_ms >= said_ms // a wait that takes longer than it may has no known end
                                   ? mem_format("\"total\":%lld.%03d,", (long long)what->total_ms / 1000,
                                                (int)(what->total_ms % 1000))
                                   : mem_strdup("");
    return mem_format("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%s,"
                      "\"progress\":%lld.%03d,%s\"message\":%s}}",
                      token, (long long)said_ms / 1000, (int)(said_ms % 1000), total, message);
}
