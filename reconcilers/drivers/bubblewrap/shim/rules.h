// The hard rules of the namespace sandbox as data: what the launcher sets and what the probe inside checks come from the
// same tables, so that neither can be forgotten when the other changes.
#pragma once
#include <linux/capability.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Capabilities that root inside keeps: file owners and identities of its own namespace, low ports, chroot. Nothing that
// reaches the kernel's administration, other network stacks, raw sockets, or resource limits.
struct kept_capability {
    const char *name;
    int number;
};
extern const struct kept_capability kept_capabilities[];
extern const size_t kept_capability_count;
uint64_t kept_capability_mask(void);

// System calls that the filter refuses whole, with the error that programs fall back on.
struct refused_call {
    int number;
    int errno_value;
};
extern const struct refused_call refused_calls[];
extern const size_t refused_call_count;

#define FILTER_MAX_LEN 512
struct filter_program {
    struct sock_filter code[FILTER_MAX_LEN];
    size_t len;
};
// with_fake_owners: chown and set*id answer 0 without doing anything (single identity).
void filter_build(bool with_fake_owners, struct filter_program *ret);
