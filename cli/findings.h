// Readiness findings, as `doctor` and `setup` print them, and how they are made where no daemon runs.
#pragma once
#include "controller/config.h"
#include "reconcilers/drivers/driver.h"

// Opens the driver by itself, asks it, and adds what a daemon would need to start: its port, the tunnel's files.
void findings_without_daemon(const struct config *config, struct finding_list *ret);
// The driver that a daemon would use here: the configured one, or what auto picks (then up to 15 s). The caller owns it.
// ret_choice: why, where that had to be found out.
int findings_driver_name(const struct config *config, char **ret, struct driver_choice *ret_choice, struct error *err);
// Failures first. Returns how many there are.
size_t findings_print(const struct finding_list *list);
json_t *findings_to_json(const struct finding_list *list);
int findings_from_json(const json_t *answer, struct finding_list *ret); // of GET /doctor; -1: not of its form
