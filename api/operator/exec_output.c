#include "api/operator/exec.h"
#include "controller/base/guest_protocol.h"
#include <stdlib.h>

void exec_output_clear(struct exec_output *output)
{
    free(output->bytes[0]);
    free(output->bytes[1]);
    *output = (struct exec_output){0};
}

static int read_stream(const json_t *from, const char *name, char **ret_bytes, size_t *ret_len)
{
    const char *text = json_get_text(from, name);
    if (!text || json_decode_base64(text, ret_bytes, ret_len, NULL) < 0)
        return -1;
    return *ret_len <= GUEST_EXEC_CHUNK_BYTES ? 0 : -1;
}

int exec_output_read(const json_t *from, struct exec_output *ret)
{
    CLEANUP(exec_output_clear) struct exec_output output = {0};
    const json_t *exited = json_object_get(from, "exited"), *code = json_object_get(from, "exit_code");
    if (read_stream(from, "stdout", &output.bytes[0], &output.len[0]) < 0 || read_stream(from, "stderr", &output.bytes[1], &output.len[1]) < 0 ||
        !json_is_boolean(exited))
        return -1;
    output.has_exited = json_is_true(exited);
    json_int_t number = json_integer_value(code);
    if (output.has_exited && (!json_is_integer(code) || number < 0 || number > 255))
        return -1;
    output.exit_code = (int)number;
    *ret = output;
    output = (struct exec_output){0};
    return 0;
}
