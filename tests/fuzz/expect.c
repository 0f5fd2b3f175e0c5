#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>

const char *fuzz_input;

void fuzz_expect(int is_true, const char *sentence)
{
    if (is_true)
        return;
    fprintf(stderr, "fuzz: it does not hold that %s%s%s\n", sentence, fuzz_input ? ": " : "", fuzz_input ? fuzz_input : "");
    abort();
}
