// What a fuzz target is: it takes bytes, and aborts with a sentence when something is wrong that no sanitizer sees. Built
// with clang's libFuzzer (cmake -DFUZZ=ON, see tests/fuzz/run), and in every build as unit_fuzz_NAME, which replays the
// committed corpus.
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
extern const char *fuzz_input; // the replayed file's name, or NULL
// Ends the process, naming what does not hold.
void fuzz_expect(int is_true, const char *sentence);
