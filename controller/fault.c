#include "controller/fault.h"
#ifdef CHAT2SHELL_FAULTS
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SLEEP_MS 60000

static struct {
    char name[128];
    long hit;        // the hit that is meant
    bool is_onwards; // and all after it
    enum { ACTION_ERROR, ACTION_EXIT, ACTION_SLEEP } action;
    long sleep_ms;
    int log_fd;
} plan = {.log_fd = -1};
static atomic_long hits;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void refuse(const char *value)
{
    fprintf(stderr, "CHAT2SHELL_FAULT=%s is not NAME:N[+]:error|exit|sleep[=MS]\n", value);
    abort(); // a test must never run without the fault that it asked for
}

static bool read_action(const char *word)
{
    if (strcmp(word, "error") == 0)
        plan.action = ACTION_ERROR;
    else if (strcmp(word, "exit") == 0)
        plan.action = ACTION_EXIT;
    else if (strncmp(word, "sleep", 5) == 0 && (word[5] == '\0' || word[5] == '='))
        plan.action = ACTION_SLEEP;
    else
        return false;
    plan.sleep_ms = plan.action == ACTION_SLEEP && word[5] == '=' ? atol(word + 6) : DEFAULT_SLEEP_MS;
    return true;
}

static void read_plan(void)
{
    const char *log = getenv("CHAT2SHELL_FAULT_LOG");
    if (log)
        plan.log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const char *value = getenv("CHAT2SHELL_FAULT");
    if (!value)
        return;
    const char *colon = strchr(value, ':');
    if (!colon || colon == value || (size_t)(colon - value) >= sizeof(plan.name))
        refuse(value);
    memcpy(plan.name, value, (size_t)(colon - value));
    char *end;
    plan.hit = strtol(colon + 1, &end, 10);
    plan.is_onwards = *end == '+';
    end += plan.is_onwards;
    if (plan.hit < 1 || *end != ':' || !read_action(end + 1))
        refuse(value);
}

static void note(const char *name)
{
    char line[160];
    int len = snprintf(line, sizeof(line), "%s\n", name);
    ssize_t ignored = write(plan.log_fd, line, (size_t)len);
    (void)ignored;
}

static void sleep_here(void)
{
    struct timespec left = {plan.sleep_ms / 1000, plan.sleep_ms % 1000 * 1000000};
    while (nanosleep(&left, &left) < 0)
        ;
}

bool fault_hit(const char *name)
{
    pthread_once(&once, read_plan);
    if (plan.log_fd >= 0)
        note(name);
    if (strcmp(name, plan.name) != 0)
        return false;
    long hit = atomic_fetch_add(&hits, 1) + 1;
    if (hit != plan.hit && !(plan.is_onwards && hit > plan.hit))
        return false;
    if (plan.action == ACTION_EXIT)
        _exit(137);
    if (plan.action == ACTION_SLEEP)
        sleep_here();
    return plan.action == ACTION_ERROR;
}
#endif
