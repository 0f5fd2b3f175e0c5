// A manifest file. Whatever comes: a refusal in a sentence, or documents whose tree of places mirrors their values; and a
// value that is written as JSON, which is YAML too, is read as the same value.
#include "controller/base/json.h"
#include "controller/yaml/yaml.h"
#include "tests/fuzz/fuzz.h"
#include <string.h>

static void check_mirror(const struct yaml_node *node, const json_t *value)
{
    bool is_list = json_is_array(value);
    size_t size = is_list ? json_array_size(value) : json_object_size(value);
    fuzz_expect(node->line > 0, "lines are counted from 1");
    fuzz_expect(node->count == size && (!size || node->is_list == is_list), "the tree mirrors the value");
    for (size_t i = 0; i < node->count; i++) {
        const struct yaml_node *item = &node->items[i];
        fuzz_expect(is_list == !item->key, "members have keys and items have none");
        json_t *at = is_list ? json_array_get(value, i) : json_object_get(value, item->key);
        fuzz_expect(at != NULL, "each place has its value");
        check_mirror(item, at);
    }
}

static void compare(void *arg, json_t *value, struct yaml_node *root)
{
    fuzz_expect(json_equal(value, arg), "JSON is read as what it says");
    json_decref(value);
    yaml_node_free(root);
}

static void take_document(void *arg, json_t *value, struct yaml_node *root)
{
    (void)arg;
    fuzz_expect(value && root && !root->key, "a document has a value and a root");
    check_mirror(root, value);
    CLEANUP_FREE char *text = json_dumps(value, JSON_ENCODE_ANY);
    fuzz_expect(text != NULL, "what is read can be written");
    yaml_parse("again", text, strlen(text), compare, value, NULL); // refused where a key or a character is beyond YAML
    json_decref(value);
    yaml_node_free(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct error err = ERROR_INIT;
    if (yaml_parse("input", (const char *)bytes, len, take_document, NULL, &err) < 0)
        fuzz_expect(err.message[0] && strncmp(err.message, "input", 5) == 0, "a refusal names the file");
    return 0;
}
