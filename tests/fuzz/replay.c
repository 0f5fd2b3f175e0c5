// Every input of a target's committed corpus, once: what was found is not found again.
#include "tests/fuzz/fuzz.h"
#include "tests/support/support.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void replay(int dir_fd, const char *name)
{
    fuzz_input = name;
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    struct stat about;
    assert_true(fd >= 0 && fstat(fd, &about) == 0);
    uint8_t *bytes = malloc((size_t)about.st_size + 1); // exactly as long, so that a step beyond it is seen
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)about.st_size), about.st_size);
    bytes = realloc(bytes, about.st_size ? (size_t)about.st_size : 1);
    LLVMFuzzerTestOneInput(bytes, (size_t)about.st_size);
    free(bytes);
    close(fd);
}

static void every_input_of_the_corpus_is_taken_well(void **state)
{
    (void)state;
    DIR *dir = opendir(TEST_SOURCE_DIR "/tests/fuzz/corpus/" FUZZ_NAME);
    assert_non_null(dir);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        replay(dirfd(dir), entry->d_name);
        count++;
    }
    closedir(dir);
    assert_true(count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_input_of_the_corpus_is_taken_well)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
