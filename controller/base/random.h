// The one place that reads the system's random source.
#pragma once
#include <stddef.h>
#include <stdint.h>

void random_bytes(void *to, size_t len);     // never fails: aborts if the kernel cannot
uint32_t random_below(uint32_t limit);       // uniform in [0, limit)
// Writes len characters of lower-case base 32 (a–z, 2–7; RFC 4648) and a NUL: 26 of them carry 130 bits.
void random_base32(char *to, size_t len);
void random_hex(char *to, size_t len);       // len lower-case hex digits and a NUL
