/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt to leave is allowed by expect.allow_egress, "host:port": by the name it was made under, or by
 * the address. A name that is allowed may be asked for; asking another name server than the job's own is an
 * attempt to reach that one. */
#include "core/judges.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <strings.h>

#include "base/number.h"
#include "core/egress.h"

#define NAMED          3u
#define NAMED_TEXT_MAX 200u
#define PART_MAX       96u
#define HOST_TEXT_MAX  256u

/* Splits an entry, which was checked when the job was read. */
static bool split_entry(const char *entry, char host[static HOST_TEXT_MAX], uint64_t *ret_port)
{
        const char *colon = strrchr(entry, ':');
        size_t length = colon ? (size_t) (colon - entry) : 0;

        if (length == 0 || length >= HOST_TEXT_MAX || parse_u64(colon + 1, ret_port) < 0)
                return false;
        if (entry[0] == '[' && length >= 2)
                entry++, length -= 2;
        memcpy(host, entry, length);
        host[length] = '\0';
        return true;
}

static bool has_prefix(const uint8_t *address, const uint8_t *network, uint64_t bits)
{
        size_t whole = (size_t) bits / 8;
        unsigned rest = (unsigned) bits % 8;

        return memcmp(address, network, whole) == 0 &&
               (rest == 0 || (address[whole] ^ network[whole]) >> (8 - rest) == 0);
}

/* host is changed. */
static bool address_matches(char *host, const Endpoint *remote)
{
        char *slash = strchr(host, '/');
        struct in6_addr network;
        uint64_t most = remote->family == AF_INET ? 32 : 128, bits = most;

        if (slash)
                *slash = '\0';
        if (inet_pton(remote->family, host, &network) != 1)
                return false;
        if (slash && (parse_u64(slash + 1, &bits) < 0 || bits > most))
                return false;
        return has_prefix(remote->address, network.s6_addr, bits);
}

static bool name_matches(const char *host, const char *name)
{
        size_t length = strlen(host);

        if (length > 0 && host[length - 1] == '.')
                length--;
        return name && strlen(name) == length && strncasecmp(host, name, length) == 0;
}

static bool is_own_resolver(const Endpoint *remote)
{
        char resolver[] = EGRESS_RESOLVER4;

        return remote->family == AF_INET && address_matches(resolver, remote);
}

static bool entry_allows(const char *entry, const EgressRecord *record)
{
        char host[HOST_TEXT_MAX];
        uint64_t port;

        if (!split_entry(entry, host, &port))
                return false;
        if (record->protocol == EGRESS_DNS && is_own_resolver(&record->remote))
                return name_matches(host, record->name);
        if (record->remote.port == 0 || port != record->remote.port)
                return false;
        return (record->protocol != EGRESS_DNS && name_matches(host, record->name)) ||
               address_matches(host, &record->remote);
}

static bool is_allowed(const Plan *plan, const EgressRecord *record)
{
        char *const *allowed = plan->job->expect.allow_egress;

        for (size_t i = 0; allowed && allowed[i]; i++)
                if (entry_allows(allowed[i], record))
                        return true;
        return false;
}

/* "tcp example.org:443 (python3, pid 12)" */
static void describe(const EgressRecord *record, char text[static NAMED_TEXT_MAX])
{
        char target[ENDPOINT_TEXT_MAX], program[PART_MAX], name[PART_MAX];
        int n;

        if (record->name) {
                text_excerpt(record->name, strlen(record->name), name, sizeof(name));
                n = record->protocol == EGRESS_DNS || record->remote.port == 0
                                    ? snprintf(text, NAMED_TEXT_MAX, "%s %s", egress_protocol(record), name)
                                    : snprintf(text, NAMED_TEXT_MAX, "%s %s:%u", egress_protocol(record),
                                                      name, record->remote.port);
        } else {
                n = snprintf(text, NAMED_TEXT_MAX, "%s %s", egress_protocol(record),
                                endpoint_format(&record->remote, target));
        }
        if (record->pid == 0 || n < 0 || (size_t) n >= NAMED_TEXT_MAX)
                return;
        if (record->program)
                text_excerpt(record->program, strlen(record->program), program, sizeof(program));
        (void) snprintf(text + n, NAMED_TEXT_MAX - (size_t) n, " (%s%spid %d)",
                        record->program ? program : "", record->program ? ", " : "", (int) record->pid);
}

int egress_judge(const Plan *plan, const Outcome *o, ReasonList *reasons)
{
        const EgressEvidence *egress = &o->egress;
        char text[NAMED * (NAMED_TEXT_MAX + 2)] = "", one[NAMED_TEXT_MAX];
        uint64_t refused = 0, listed = 0;
        size_t used = 0, n = 0;
        int r = 0;

        for (size_t i = 0; i < egress->n; i++) {
                const EgressRecord *record = &egress->items[i];

                listed += record->count;
                if (is_allowed(plan, record))
                        continue;
                refused += record->count;
                if (n++ >= NAMED)
                        continue;
                describe(record, one);
                used += (size_t) snprintf(text + used, sizeof(text) - used, "%s%s", n == 1 ? "" : ", ", one);
        }
        if (n > 0)
                r = reason_add(reasons, "egress", "%s%" PRIu64 " attempt%s to leave: %s%s",
                                egress->total > listed ? "at least " : "", refused, refused == 1 ? "" : "s",
                                text, n > NAMED ? ", ..." : "");
        else if (egress->total > listed)
                r = reason_add(reasons, "evidence_lost",
                                "more destinations than the %zu listed: the others could not be compared with "
                                "allow_egress",
                                egress->n);
        if (r >= 0 && egress->lost > 0)
                r = reason_add(reasons, "evidence_lost",
                                "%" PRIu64 " packet%s that the job sent %s lost before they were read",
                                egress->lost, egress->lost == 1 ? "" : "s",
                                egress->lost == 1 ? "was" : "were");
        return r;
}
