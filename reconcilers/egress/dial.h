// A connection outwards: the name is denied or resolved once, every address is judged, and exactly the address that
// was judged is dialed (or given to the upstream proxy). One dial, from first look to a connected descriptor.
//
//     conn->dial = dial_new(egress, &endpoint, dialed, conn);
//     dial_run(conn->dial);          // `done` may run inside
#pragma once
#include "reconcilers/egress/resolve.h"

struct dial_failure {
    int status;       // for an HTTP answer: 403, 502 or 504
    const char *word; // X-Chat2shell-Denied, NULL if it was not policy
    char text[640];   // what, why, what to do
};

struct dial;
// Takes the connected descriptor, or gets the failure. The dial is gone afterwards.
typedef void (*dial_done)(void *data, int fd, const struct dial_failure *failure);

struct dial *dial_new(struct egress *egress, const struct endpoint *to, dial_done done, void *data);
void dial_run(struct dial *dial);
void dial_cancel(struct dial *dial); // `done` will not be called
