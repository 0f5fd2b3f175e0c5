// What sandboxes of this driver are, and what was found in one.
#include "controller/base/memory.h"
#include "reconcilers/drivers/sbx/sbx.h"

static void add(struct capability_list *list, const char *name, bool is_available, const char *message)
{
    list->items = mem_realloc_array(list->items, list->count + 1, sizeof(*list->items));
    list->items[list->count++] = (struct capability){mem_strdup(name), is_available, mem_strdup_or_null(message)};
}

static void add_all(struct capability_list *ret, bool has_docker, bool has_sudo)
{
    add(ret, "docker", has_docker, has_docker ? "a private Docker Engine inside; the host's is out of reach" : "the sandbox's template has no docker program");
    add(ret, "network", true, "outbound connections as the network policy of Docker Sandboxes on this machine allows");
    add(ret, "packages", true, "packages can be installed; what is installed goes away with the sandbox");
    add(ret, "sudo", has_sudo, has_sudo ? "sudo needs no password" : "the sandbox's template has no sudo");
}

void sbx_facts_describe(struct driver *driver, const char *template_name, struct capability_list *ret)
{
    (void)driver;
    (void)template_name; // what is in it is known once a sandbox was made from it
    add_all(ret, true, true);
}

void sbx_facts_fill(const struct inside *inside, const char *template_name, struct driver_facts *ret)
{
    *ret = (struct driver_facts){.isolation = "microvm", .template_name = template_name, .workspace_root = inside->root};
    add_all(&ret->capabilities, inside->has_docker, inside->has_sudo);
    text_list_add(&ret->limits, "memory");
    text_list_add(&ret->limits, "cpu");
}

void sbx_facts_free(struct driver_facts *facts)
{
    for (size_t i = 0; i < facts->capabilities.count; i++) {
        free(facts->capabilities.items[i].name);
        free(facts->capabilities.items[i].message);
    }
    free(facts->capabilities.items);
    text_list_clear(&facts->limits);
    text_list_clear(&facts->warnings);
}
