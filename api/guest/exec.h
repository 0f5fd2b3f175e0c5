// Programs for the operator's exec, cp and export: chat2shell/exec_*. Loop thread only.
#pragma once
#include "api/guest/request.h"

void exec_start_request(struct request *request);
void exec_write_request(struct request *request);
void exec_read_request(struct request *request);
void exec_signal_request(struct request *request);
void exec_resize_request(struct request *request);
void exec_end_request(struct request *request);
void execs_free(struct guest *guest); // their processes are gone already
