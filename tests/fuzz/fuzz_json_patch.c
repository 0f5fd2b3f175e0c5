// [document, operations]: a JSON patch as the operator API gets it. All or nothing, and what it shares with the patch or the
// old document must not show.
#include "api/operator/json_patch.h"
#include "controller/base/cleanup.h"
#include "controller/base/json.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP_JSON json_t *input = NULL;
    if (json_parse((const char *)bytes, len, &input, NULL) < 0)
        return 0;
    const json_t *operations = json_array_get(input, 1);
    if (!json_array_get(input, 0) || !operations)
        return 0;
    CLEANUP_JSON json_t *before = json_deep_copy(json_array_get(input, 0)), *asked = json_deep_copy(operations);
    CLEANUP_JSON json_t *document = json_incref(json_array_get(input, 0)), *again = json_deep_copy(before);
    struct error err = ERROR_INIT;
    bool is_done = json_patch_apply(&document, operations, &err) == 0;
    fuzz_expect(document != NULL, "there is a document afterwards");
    fuzz_expect(json_equal(json_array_get(input, 0), before), "the document that was there is left as it was");
    fuzz_expect(json_equal(operations, asked), "the operations are left as they were");
    fuzz_expect(is_done || (document == json_array_get(input, 0) && err.message[0]), "a failure is a sentence and changes nothing");
    fuzz_expect((json_patch_apply(&again, asked, NULL) == 0) == is_done && json_equal(again, document), "the same patch does the same");
    CLEANUP_FREE char *text = json_dumps(document, JSON_ENCODE_ANY);
    fuzz_expect(text != NULL, "what comes out can be written");
    return 0;
}
