#include "api/http/microhttpd_library.h"
#include "controller/library.h"
#include <assert.h>
#include <microhttpd.h>
#include <stdarg.h>

#define NAME "libmicrohttpd"
#define HINT_INSTALL "install the package libmicrohttpd12"

// X(RESULT, NAME, PARAMETERS, ARGUMENTS)
#define FUNCTIONS(X)                                                                                                                      \
    X(enum MHD_Result, MHD_add_response_header, (struct MHD_Response * response, const char *header, const char *content),                \
      (response, header, content))                                                                                                        \
    X(struct MHD_Response *, MHD_create_response_from_buffer, (size_t size, void *buffer, enum MHD_ResponseMemoryMode mode),              \
      (size, buffer, mode))                                                                                                               \
    X(struct MHD_Response *, MHD_create_response_from_buffer_with_free_callback,                                                          \
      (size_t size, void *buffer, MHD_ContentReaderFreeCallback free_buffer), (size, buffer, free_buffer))                                \
    X(struct MHD_Response *, MHD_create_response_from_callback,                                                                           \
      (uint64_t size, size_t block_size, MHD_ContentReaderCallback read, void *arg, MHD_ContentReaderFreeCallback free_arg),              \
      (size, block_size, read, arg, free_arg))                                                                                            \
    X(struct MHD_Response *, MHD_create_response_for_upgrade, (MHD_UpgradeHandler started, void *arg), (started, arg))                    \
    X(void, MHD_destroy_response, (struct MHD_Response * response), (response))                                                           \
    X(int, MHD_get_connection_values,                                                                                                     \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, MHD_KeyValueIterator visit, void *arg), (connection, kind, visit, arg)) \
    X(int, MHD_get_connection_values_n,                                                                                                   \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, MHD_KeyValueIteratorN visit, void *arg), (connection, kind, visit, arg)) \
    X(const char *, MHD_get_version, (void), ())                                                                                          \
    X(const char *, MHD_lookup_connection_value, (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key),          \
      (connection, kind, key))                                                                                                            \
    X(enum MHD_Result, MHD_lookup_connection_value_n,                                                                                     \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key, size_t key_size, const char **ret, size_t *ret_size), \
      (connection, kind, key, key_size, ret, ret_size))                                                                                   \
    X(enum MHD_Result, MHD_queue_response, (struct MHD_Connection * connection, unsigned int status, struct MHD_Response *response),      \
      (connection, status, response))                                                                                                     \
    X(void, MHD_resume_connection, (struct MHD_Connection * connection), (connection))                                                    \
    X(struct MHD_Daemon *, MHD_start_daemon_va,                                                                                           \
      (unsigned int flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_arg, MHD_AccessHandlerCallback access,            \
       void *access_arg, va_list options),                                                                                                \
      (flags, port, accept, accept_arg, access, access_arg, options))                                                                     \
    X(void, MHD_stop_daemon, (struct MHD_Daemon * daemon), (daemon))                                                                      \
    X(void, MHD_suspend_connection, (struct MHD_Connection * connection), (connection))

static struct {
#define X(result, name, parameters, arguments) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
    __typeof__(MHD_get_connection_info) *MHD_get_connection_info;
    __typeof__(MHD_set_connection_option) *MHD_set_connection_option;
    __typeof__(MHD_upgrade_action) *MHD_upgrade_action;
} functions;

#define FIND(name)                                                                                                    \
    if (!(functions.name = (__typeof__(functions.name))library_find(handle, #name, NAME, HINT_INSTALL, err)))         \
        return -1;

static int load(struct error *err)
{
    void *handle = library_open("libmicrohttpd.so.12", NAME, HINT_INSTALL, err);
    if (!handle)
        return -1;
#define X(result, name, parameters, arguments) FIND(name)
    FUNCTIONS(X)
#undef X
    FIND(MHD_get_connection_info)
    FIND(MHD_set_connection_option)
    FIND(MHD_upgrade_action)
    return 0;
}

int microhttpd_load(struct error *err)
{
    static struct library library = LIBRARY_INIT(load);
    return library_is_loaded(&library, err) ? 0 : -1;
}

// ---- the functions themselves -------------------------------------------------------------------------------------------
#define X(result, name, parameters, arguments)                            \
    result name parameters                                                \
    {                                                                     \
        assert(functions.name && "microhttpd_load comes first");          \
        return functions.name arguments;                                  \
    }
FUNCTIONS(X)
#undef X

struct MHD_Daemon *MHD_start_daemon(unsigned int flags, uint16_t port, MHD_AcceptPolicyCallback accept, void *accept_arg,
                                    MHD_AccessHandlerCallback access, void *access_arg, ...)
{
    va_list options;
    va_start(options, access_arg);
    struct MHD_Daemon *daemon = MHD_start_daemon_va(flags, port, accept, accept_arg, access, access_arg, options);
    va_end(options);
    return daemon;
}

// What is asked of a connection has no further argument in this version.
const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...)
{
    return functions.MHD_get_connection_info(connection, type);
}

// The one option that there is.
enum MHD_Result MHD_set_connection_option(struct MHD_Connection *connection, enum MHD_CONNECTION_OPTION option, ...)
{
    va_list values;
    assert(option == MHD_CONNECTION_OPTION_TIMEOUT);
    va_start(values, option);
    unsigned int timeout_s = va_arg(values, unsigned int);
    va_end(values);
    return functions.MHD_set_connection_option(connection, option, timeout_s);
}

// The actions have no further argument.
enum MHD_Result MHD_upgrade_action(struct MHD_UpgradeResponseHandle *handle, enum MHD_UpgradeAction action, ...)
{
    return functions.MHD_upgrade_action(handle, action);
}
