#include "api/guest/methods.h"
#include "api/guest/exec.h"
#include "api/guest/git.h"
#include "api/guest/session.h"
#include <string.h>

#define LATEST_PROTOCOL "2025-11-25"
#define SESSIONS_VERSION 1

static const char instructions[] = "Look at the workspace first (open_current_workspace, then tree, search, "
                                   "read) and follow its AGENTS file if there is one. "
                                   "Change files with write and edit, which show what they changed. Use bash "
                                   "to build and test. Every path is relative to "
                                   "the workspace root or absolute inside it.";

static const char *choose_protocol(const json_t *params)
{
    static const char *const known[] = {LATEST_PROTOCOL, "2025-06-18", "2025-03-26", "2024-11-05",
                                        "2024-10-07"};
    const char *asked = json_get_text(params, "protocolVersion");
    for (size_t i = 0; asked && i < ARRAY_LEN(known); i++)
        if (strcmp(known[i], asked) == 0)
            return known[i];
    return LATEST_PROTOCOL;
}

static void initialize(struct request *request)
{
    review_forget(&request->guest->review); // a new conversation has been shown nothing
    json_t *capabilities = json_pack("{s:{s:b} s:{s:{s:i}}}", "tools", "listChanged", 0, "experimental",
                                     GUEST_SESSIONS_CAPABILITY, "version", SESSIONS_VERSION);
    request_answer(request,
                   json_pack("{s:s s:o s:{s:s s:s s:s} s:s}", "protocolVersion",
                             choose_protocol(request->params), "capabilities", capabilities, "serverInfo",
                             "name", "chat2shell-guest", "title", "chat2shell tool server", "version",
                             GUEST_VERSION, "instructions", instructions));
}

static void ping(struct request *request)
{
    request_answer(request, json_object());
}

static void list_tools(struct request *request)
{
    json_t *list = json_array();
    for (size_t i = 0; guest_tools[i]; i++)
        json_array_append_new(list, guest_tool_describe(guest_tools[i]));
    request_answer(request, json_pack("{s:o}", "tools", list));
}

static const struct method methods[] = {
    {"initialize", initialize},
    {"ping", ping},
    {"tools/list", list_tools},
    {"tools/call", guest_tool_call_request},
    {"chat2shell/bash_start", session_start_request},
    {"chat2shell/bash_read", session_read_request},
    {"chat2shell/bash_stop", session_stop_request},
    {"chat2shell/exec_start", exec_start_request},
    {"chat2shell/exec_write", exec_write_request},
    {"chat2shell/exec_read", exec_read_request},
    {"chat2shell/exec_signal", exec_signal_request},
    {"chat2shell/exec_resize", exec_resize_request},
    {"chat2shell/exec_end", exec_end_request},
    {"chat2shell/git_unsaved", git_unsaved_request},
};

const struct method *method_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}
