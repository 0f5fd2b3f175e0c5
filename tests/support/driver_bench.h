// A driver on a real loop and spawner for tests, with calls that wait for their answers.
#pragma once
#include "reconcilers/drivers/driver.h"
#include "tests/support/support.h"
#include <stddef.h>

struct driver_bench {
    struct clock *clock;
    struct loop *loop;
    struct spawner *spawner;
    struct driver *driver;
    char *dir; // state_dir = dir/state, data_root = dir
};
struct bench_created {
    int result;
    struct error err;
    char template_name[64], isolation[16], root[1024];
    char limits[256], missing[1024], warnings[1024], broken[1024]; // lists joined with "; "
};
struct bench_session {
    int result;
    struct error err;
    struct driver_session session;
};
void bench_open(struct driver_bench *bench, const char *dir); // dir NULL: a fresh one
// The driver for Docker Sandboxes over the stand-in in tests/fakes, whose home is dir/home. Its runtimes' names begin with
// BENCH_PREFIX.
#define BENCH_INSTANCE "0123456789abcdef"
#define BENCH_PREFIX RUNTIME_PREFIX "01234567-"
void bench_open_sbx(struct driver_bench *bench, const char *dir);
void bench_close(struct driver_bench *bench);                 // driver, loop, spawner; keeps the directory
void bench_destroy(struct driver_bench *bench);               // and the directory
// A runtime name that no other test program has: cgroups have it, and several test programs may run at once.
const char *bench_name(void);
// A fresh private directory below the bench's; the caller frees it.
char *bench_workspace(struct driver_bench *bench, const char *name);
struct bench_created bench_create(struct driver_bench *bench, const struct driver_spec *spec);
struct bench_created bench_create_simple(struct driver_bench *bench, const char *name, const char *root);
struct bench_session bench_session(struct driver_bench *bench, const char *name);
int bench_remove(struct driver_bench *bench, const char *name, struct error *err);
int bench_publish(struct driver_bench *bench, const char *name, int port, int *ret_host_port, struct error *err);
int bench_unpublish(struct driver_bench *bench, const char *name, int port, struct error *err);
int bench_probe_port(struct driver_bench *bench, const char *name, int port, struct error *err);
// Runs a command through the guest's exec methods; output is what both streams printed. The exit code, -1 on failure.
int bench_exec(struct bench_session *session, const char *const *argv, char *output, size_t size);
int bench_shell(struct bench_session *session, const char *command, char *output, size_t size);
void bench_session_close(struct bench_session *session);
bool bench_wait_died(struct driver_bench *bench, int timeout_ms, char *reason, size_t size);
size_t bench_list_count(struct driver_bench *bench);
