// The last request of a CodexPro session, DELETE /mcp: sent when its lane is gone already, forgotten after 2 s. Nobody
// waits for it; the sandbox usually goes at the same time. Loop thread only.
#pragma once
#include "reconcilers/session/codexpro/http.h"

#define FAREWELL_MS 2000

struct farewells; // of one controller; costs nothing until the first
struct farewells *farewells_new(struct loop *loop);
void farewells_free(struct farewells *farewells); // at once, whatever is under way; not from inside an event of theirs
// Takes the http, which must have no exchange under way; it may be inside one of its events.
void farewells_send(struct farewells *farewells, struct http *http, const char *session_id);
