// Is a silent tool server still there? One answer for both kinds of session.
//
// A server that dies is seen at once: its process ends. One that hangs is found by probes (`ping` over stdio, GET /healthz
// over HTTP), and only while somebody waits for it: a session without a request is not probed, because nobody is kept
// waiting by it, an idle controller does no work, and the next call finds out within 32 s. Any byte from the server is a
// sign of life, and so is that it goes on reading a large request. After HEALTH_SILENCE_MS without one it is probed every HEALTH_INTERVAL_MS; a probe is missed when
// the next one is due and nothing was heard since. HEALTH_MISSED_MAX missed in a row: it is broken. So a server that stalls
// goes on living for half a minute, as with the default of Kubernetes' liveness probes: what is broken takes the sandbox and its Bash
// sessions along, and a server is silent for seconds, too, when a build next to it takes all processors or the memory is short. A
// suspended machine costs one miss.
#pragma once
#include <stdbool.h>

#define HEALTH_SILENCE_MS 2000
#define HEALTH_INTERVAL_MS 10000
#define HEALTH_MISSED_MAX 3

struct rpc;
struct loop_timer;
struct health {
    bool is_on;
    bool is_heard;   // since the timer was armed
    bool is_probing; // a probe is out since then
    bool is_suspect; // a connection failed: probed even if nobody waits
    int missed;
    struct loop_timer *timer; // runs while somebody waits
};

void health_start(struct rpc *rpc);
void health_stop(struct rpc *rpc);
void health_note_request(struct rpc *rpc); // somebody waits
void health_note_answered(struct rpc *rpc);
void health_note_heard(struct rpc *rpc);   // a sign of life
void health_suspect(struct rpc *rpc);      // something failed that a server in good health does
