/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Properties as they go into a StartTransientUnit message. Part of sys/manager. */

#include <systemd/sd-bus.h>

#include "core/property.h"

/* Appends one (sv), or several where one documented name is several on the bus. 0 or a negative errno. */
int manager_append_property(sd_bus_message *m, const PropertyValue *value);

/* What every held service has and no policy may change: its program, its network namespace (NULL: none
 * given), its standard input, and every way to end
 * counted as success, so that the manager keeps the unit (and its cgroup's counters) until it is stopped. */
int manager_append_service(
                sd_bus_message *m, const char *program, const char *network_namespace, int stdin_fd);
