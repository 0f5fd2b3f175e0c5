// Detached Bash sessions: chat2shell/bash_start, bash_read, bash_stop. Loop thread only.
#pragma once
#include "api/guest/request.h"

void session_start_request(struct request *request);
void session_read_request(struct request *request);
void session_stop_request(struct request *request);
void sessions_free(struct guest *guest); // their processes are gone already
