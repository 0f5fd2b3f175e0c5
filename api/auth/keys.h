// The public keys of the authorization server (a JSON Web Key Set, RFC 7517): read from a file, which is looked at again when
// it changed, or fetched from an https URL.
//
// Fetching runs on a thread of its own, one at a time, and is begun by a request that meets a key id nobody knows (once a
// minute at most) or keys older than a quarter of an hour, which go on being used meanwhile; whatever a fetch brings, keys
// that are there are kept until better ones are.
#pragma once
#include "api/auth/jwk.h"
#include "controller/clock.h"
#include "controller/base/error.h"

#define KEYS_REFETCH_MIN_MS 60000           // after one fetch, before an unknown key id begins the next one
#define KEYS_FIRST_REFETCH_MS 5000          // the same while there are no keys at all
#define KEYS_FRESH_MS (15 * 60 * 1000)      // keys of a URL older than this are fetched again when they are used
#define KEYS_FILE_LOOK_MS 1000              // a file is looked at this often at most
#define KEYS_FETCH_MS 10000                 // one fetch, from connecting to the last byte
#define KEYS_TEXT_MAX_BYTES (256 * 1024)

struct key_source; // thread-safe
// where: an absolute path (read now: what is wrong with it is an error), or a URL (the first fetch is begun).
int key_source_start(const char *where, struct clock *clock, struct key_source **ret, struct error *err);
void key_source_stop(struct key_source *source); // waits for a fetch; NULL allowed

enum key_answer {
    KEYS_FOUND,   // *ret: a reference, for jwk_set_unref
    KEYS_PENDING, // the keys that are there do not have it, and others are on their way
    KEYS_NONE,    // it is none of the server's keys
};
// key_id NULL: the token names none. Never blocks.
enum key_answer key_source_find(struct key_source *source, const char *key_id, enum jwk_algorithm algorithm, struct jwk_set **ret_set,
                                const struct jwk **ret);
