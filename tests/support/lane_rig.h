// Lanes over pipes whose other ends the test holds: the test itself is the tool server, says what it likes and when it
// likes, on a clock that only moves when told.
#pragma once
#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "reconcilers/session/session.h"

#define RIG_SANDBOX "sbx_aaaaaaaaaaaaaaaaaaaaaaaaaa"
#define RIG_OTHER "sbx_bbbbbbbbbbbbbbbbbbbbbbbbbb"
#define RIG_WORKSPACE "ws_cccccccccccccccccccccccccc"
#define RIG_INNER "ws_0123456789abcdef01234567"
#define RIG_START_MS 1800000000000LL

struct rig {
    char *dir;
    struct clock *clock;
    struct loop *loop;
    struct store *store;
    struct lanes *lanes;
};
int rig_setup(void **state);    // cmocka fixtures: *state is the rig
int rig_setup_real(void **state); // the same on the real clock
int rig_teardown(void **state); // what the lanes still hold must end there

// The test's ends of a tool server's stdio.
struct server {
    int input_fd, output_fd, error_fd; // reads requests; writes answers; writes stderr
    struct buffer in;
    bool shows_pings; // false: they are answered, and not shown
};
// What one callback said. Waiting for it fails the test after a minute.
struct heard {
    int count, result;
    json_t *answer;
    struct error error;
    char *reason, *last_lines; // died
    bool has_sessions;
    char *server_name;
};
void heard_wait(struct heard *heard);
bool heard_yet(struct heard *heard);
bool heard_leave(struct heard *heard, struct lane_call *call); // lane_call_cancel, if it was not answered
void heard_clear(struct heard *heard);
void heard_answer(void *arg, int result, json_t *answer, const struct error *err); // a lane_answer_fn

void server_pipes(struct server *server, struct driver_session *session);
void server_close(struct server *server);
// Opens a lane and goes through the handshake. died may be NULL.
void rig_open(struct rig *rig, const char *uid, struct server *server, struct heard *died);
void rig_open_unfinished(struct rig *rig, const char *uid, struct server *server, struct heard *ready, struct heard *died);
// The descriptors alone: the tool server may be reached in another way. Takes the session.
void rig_open_session(struct rig *rig, const char *uid, struct driver_session *session, struct heard *ready, struct heard *died);
json_t *server_hello(bool has_sessions);

json_t *server_next(struct server *server);                       // next message of the lane; owned by the caller
json_t *server_try_next(struct server *server);                   // NULL: nothing is there, or the lane closed
json_t *server_expect(struct server *server, const char *method); // it must be that one
void server_expect_nothing(struct rig *rig, struct server *server);
void server_say(struct server *server, const char *bytes, size_t len);
void server_say_text(struct server *server, const char *text); // a newline is added
void server_answer(struct server *server, const json_t *request, json_t *result); // takes both references
void server_refuse(struct server *server, const json_t *request, int code, const char *message);

void rig_settle(struct rig *rig);              // everything that was asked before has been done
void rig_advance(struct rig *rig, int64_t ms); // and what is due has run
struct lane_call *rig_call(struct rig *rig, const char *uid, const char *tool, struct heard *heard);
json_t *rig_result(const char *text);
