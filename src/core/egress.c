/* SPDX-License-Identifier: Apache-2.0 */
#include "core/egress.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/text.h"
#include "core/dns.h"

#define PORT_DNS      53u
#define SLOTS         4096u /* more than twice as many as there can be entries */
#define SYNS_KEPT     256u
#define NAMES_BASE    0xc6120100u /* 198.18.1.0: what is below is the sink's */
#define ANCESTORS_MAX 64u
#define SEND_USEC     (100 * USEC_PER_MSEC) /* from its trace to the device a packet takes less */
#define RACE_USEC     50u /* two that were sent on two CPUs so close may have changed places */

_Static_assert(SLOTS >= 2 * EGRESS_NAMES_MAX && SLOTS >= 2 * EGRESS_RECORDS_MAX, "tables never fill up");
_Static_assert(EGRESS_NAMES_MAX <= 0x1ff00, "every name has an address in 198.18.0.0/15");

/* The same connection attempt: sent again by the kernel when no answer came in time. */
typedef struct Syn {
        Endpoint source, remote;
        uint32_t sequence;
} Syn;

struct Egress {
        EgressRecord *records;
        size_t n_records;
        uint64_t total;
        RefusedRecord *refused;
        size_t n_refused;
        uint64_t refused_total[_REFUSED_KIND_MAX];
        char **names; /* the i-th has the address NAMES_BASE + i */
        size_t n_names;
        uint16_t record_slots[SLOTS], name_slots[SLOTS]; /* index + 1; 0: free */
        Syn syns[SYNS_KEPT];
        size_t next_syn;
};

Egress *egress_new(void)
{
        Egress *egress = calloc(1, sizeof(*egress));

        if (!egress)
                return NULL;
        egress->records = calloc(EGRESS_RECORDS_MAX, sizeof(*egress->records));
        egress->names = strv_new(EGRESS_NAMES_MAX);
        egress->refused = calloc(EGRESS_REFUSED_MAX, sizeof(*egress->refused));
        return egress->records && egress->names && egress->refused ? egress : egress_free(egress);
}

Egress *egress_free(Egress *egress)
{
        EgressEvidence rest = { 0 };

        if (!egress)
                return NULL;
        egress_collect(egress, &rest);
        egress_evidence_clear(&rest);
        strv_free(egress->names);
        free(egress);
        return NULL;
}

void egress_collect(Egress *egress, EgressEvidence *ret)
{
        ret->items = TAKE_PTR(egress->records);
        ret->n = egress->n_records;
        ret->total = egress->total;
        ret->refused = TAKE_PTR(egress->refused);
        ret->n_refused = egress->n_refused;
        memcpy(ret->refused_total, egress->refused_total, sizeof(ret->refused_total));
        egress->n_records = egress->n_refused = 0;
}

/* FNV-1a. A job that makes names collide makes a search long, and no longer than a table. */
static uint32_t hash_bytes(uint32_t hash, const void *data, size_t size)
{
        const uint8_t *p = data;

        while (size-- > 0)
                hash = (hash ^ *p++) * 16777619u;
        return hash;
}

#define HASH_START 2166136261u

/* --- names --- */

static uint16_t *find_name(Egress *egress, const char *name)
{
        uint32_t i = hash_bytes(HASH_START, name, strlen(name)) % SLOTS;

        while (egress->name_slots[i] && !streq(egress->names[egress->name_slots[i] - 1], name))
                i = (i + 1) % SLOTS;
        return &egress->name_slots[i];
}

/* The address that stands for a name. 1: there is none left. */
static int name_address(Egress *egress, const char *name, uint8_t address[static 4])
{
        uint16_t *slot = find_name(egress, name);
        uint32_t value;

        if (*slot == 0) {
                if (egress->n_names == EGRESS_NAMES_MAX)
                        return 1;
                egress->names[egress->n_names] = strdup(name);
                if (!egress->names[egress->n_names])
                        return -ENOMEM;
                *slot = (uint16_t) ++egress->n_names;
        }
        value = htonl(NAMES_BASE + *slot - 1u);
        memcpy(address, &value, sizeof(value));
        return 0;
}

static const char *name_of(const Egress *egress, const Endpoint *remote)
{
        uint32_t value;

        if (remote->family != AF_INET)
                return NULL;
        memcpy(&value, remote->address, sizeof(value));
        value = ntohl(value);
        return value >= NAMES_BASE && value - NAMES_BASE < egress->n_names ? egress->names[value - NAMES_BASE]
                                                                           : NULL;
}

/* --- records --- */

static uint32_t hash_record(const EgressRecord *r)
{
        uint32_t hash = hash_bytes(HASH_START, &r->protocol, sizeof(r->protocol));

        hash = hash_bytes(hash, &r->ip_protocol, sizeof(r->ip_protocol));
        hash = hash_bytes(hash, r->remote.address, sizeof(r->remote.address));
        hash = hash_bytes(hash, &r->remote.port, sizeof(r->remote.port));
        hash = hash_bytes(hash, &r->pid, sizeof(r->pid));
        return r->name ? hash_bytes(hash, r->name, strlen(r->name)) : hash;
}

static bool same_endpoint(const Endpoint *a, const Endpoint *b)
{
        return a->family == b->family && a->port == b->port &&
               memcmp(a->address, b->address, sizeof(a->address)) == 0;
}

static bool same_record(const EgressRecord *a, const EgressRecord *b)
{
        return a->protocol == b->protocol && a->ip_protocol == b->ip_protocol && a->pid == b->pid &&
               same_endpoint(&a->remote, &b->remote) && streq_ptr(a->name, b->name);
}

/* wanted->name is borrowed. *ret: the record if it is a new one. */
static int count_attempt(Egress *egress, const EgressRecord *wanted, EgressRecord **ret)
{
        uint32_t i = hash_record(wanted) % SLOTS;
        EgressRecord *record;

        *ret = NULL;
        egress->total++;
        for (; egress->record_slots[i]; i = (i + 1) % SLOTS) {
                record = &egress->records[egress->record_slots[i] - 1];
                if (same_record(record, wanted)) {
                        record->count++;
                        return 0;
                }
        }
        if (egress->n_records == EGRESS_RECORDS_MAX)
                return 0;
        record = &egress->records[egress->n_records];
        *record = *wanted;
        record->name = wanted->name ? strdup(wanted->name) : NULL;
        if (wanted->name && !record->name)
                return -ENOMEM;
        record->count = 1;
        egress->record_slots[i] = (uint16_t) ++egress->n_records;
        *ret = record;
        return 0;
}

/* --- packets --- */

static bool is_repeated_syn(Egress *egress, const Packet *p)
{
        Syn syn = { p->source, p->remote, p->tcp_sequence };

        if (p->protocol != IPPROTO_TCP || (p->tcp_flags & (TH_SYN | TH_ACK)) != TH_SYN)
                return false;
        for (size_t i = 0; i < SYNS_KEPT; i++)
                if (egress->syns[i].sequence == syn.sequence &&
                                same_endpoint(&egress->syns[i].source, &syn.source) &&
                                same_endpoint(&egress->syns[i].remote, &syn.remote))
                        return true;
        egress->syns[egress->next_syn++ % SYNS_KEPT] = syn;
        return false;
}

bool egress_ignores(Egress *egress, const Packet *p)
{
        return p->later_fragment || packet_is_kernels(p) || is_repeated_syn(egress, p);
}

/* A name that has an address has no other records; where addresses are turned into names, nothing has one. */
static int answer_question(Egress *egress, const Packet *p, const DnsQuestion *question, EgressReply *ret)
{
        uint8_t address[4], answer[DNS_ANSWER_MAX];
        DnsResult result = question->type == DNS_PTR ? DNS_NOT_FOUND : DNS_FOUND;
        size_t size;
        int r = 0;

        if (result == DNS_FOUND)
                r = name_address(egress, question->name, address);
        if (r < 0)
                return r;
        if (r > 0)
                result = DNS_NOT_FOUND;
        size = dns_answer(question, result, question->type == DNS_A ? address : NULL, answer);
        ret->size = packet_reply(p, answer, size, ret->data);
        return 0;
}

static EgressProtocol protocol_of(const Packet *p)
{
        switch (p->protocol) {
        case IPPROTO_TCP:
                return EGRESS_TCP;
        case IPPROTO_UDP:
                return EGRESS_UDP;
        case IPPROTO_ICMP:
        case IPPROTO_ICMPV6:
                return EGRESS_ICMP;
        default:
                return EGRESS_OTHER;
        }
}

int egress_packet(Egress *egress, const Packet *p, pid_t pid, uint64_t usec, EgressReply *ret)
{
        EgressRecord record = {
                .protocol = protocol_of(p),
                .ip_protocol = p->protocol,
                .remote = p->remote,
                .name = (char *) name_of(egress, &p->remote),
                .pid = pid,
                .first_usec = usec,
        };
        DnsQuestion question;
        int r;

        *ret = (EgressReply){ 0 };
        if (p->protocol == IPPROTO_UDP && p->remote.port == PORT_DNS && !packet_is_multicast(p) &&
                        dns_parse(p->payload, p->payload_size, &question) == 0) {
                record.protocol = EGRESS_DNS;
                record.name = question.name;
                r = answer_question(egress, p, &question, ret);
                if (r < 0)
                        return r;
        } else {
                ret->size = packet_refuse(p, ret->data);
        }
        return count_attempt(egress, &record, &ret->fresh);
}

/* --- what was refused --- */

void egress_refused(Egress *egress, RefusedKind kind, pid_t pid, uint64_t usec)
{
        egress->refused_total[kind]++;
        for (size_t i = 0; i < egress->n_refused; i++) {
                if (egress->refused[i].kind == kind && egress->refused[i].pid == pid) {
                        egress->refused[i].count++;
                        return;
                }
        }
        if (egress->n_refused < EGRESS_REFUSED_MAX)
                egress->refused[egress->n_refused++] =
                                (RefusedRecord){ .kind = kind, .pid = pid, .count = 1, .first_usec = usec };
}

/* --- programs --- */

/* Numbers are used again: the process that had this one at that time. */
static const ProcessNode *find_process(const ProcessTree *tree, pid_t pid, uint64_t usec)
{
        for (size_t i = 0; i < tree->n; i++) {
                const ProcessNode *node = &tree->items[i];

                if (node->pid == pid && node->start_usec != UNKNOWN && node->start_usec <= usec &&
                                usec <= node->end_usec)
                        return node;
        }
        return NULL;
}

/* What it had executed last, or else it was a copy of its parent. */
static const char *find_program(const ProcessTree *tree, pid_t pid, uint64_t usec)
{
        const ProcessNode *node = find_process(tree, pid, usec);

        for (unsigned i = 0; node && i < ANCESTORS_MAX; i++) {
                for (size_t run = node->n_runs; run > 0; run--)
                        if (node->runs[run - 1].usec <= usec)
                                return node->runs[run - 1].path;
                usec = node->start_usec;
                node = find_process(tree, node->ppid, usec);
        }
        return NULL;
}

/* Without memory it stays as it was. */
static void name_program(const ProcessTree *tree, pid_t pid, uint64_t usec, char **program)
{
        const char *found = pid > 0 ? find_program(tree, pid, usec) : NULL;
        char *copy = found ? strdup(found) : NULL;

        if (!copy)
                return;
        free(*program);
        *program = copy;
}

void egress_name_programs(EgressEvidence *egress, const ProcessTree *tree)
{
        for (size_t i = 0; i < egress->n; i++)
                name_program(tree, egress->items[i].pid, egress->items[i].first_usec,
                                &egress->items[i].program);
        for (size_t i = 0; i < egress->n_refused; i++)
                name_program(tree, egress->refused[i].pid, egress->refused[i].first_usec,
                                &egress->refused[i].program);
}

/* --- senders --- */

void senders_add(SenderQueue *queue, const TraceEvent *event)
{
        if (queue->n == SENDERS_MAX) {
                queue->first = (queue->first + 1) % SENDERS_MAX;
                queue->n--;
                queue->doubtful = true;
        }
        queue->items[(queue->first + queue->n++) % SENDERS_MAX] =
                        (Sender){ event->pid, event->value, event->usec };
}

void senders_doubt(SenderQueue *queue)
{
        queue->doubtful = true;
}

static const Sender *sender_at(const SenderQueue *queue, size_t i)
{
        return &queue->items[(queue->first + i) % SENDERS_MAX];
}

/* Two that were sent on two CPUs so close may have changed places. */
static bool may_be_swapped(const Sender *a, const Sender *b)
{
        return a->size == b->size && a->pid != b->pid && b->usec - a->usec < RACE_USEC;
}

bool senders_take(SenderQueue *queue, int size, Sender *ret)
{
        const Sender *found;
        bool sure;
        size_t i = 0;

        while (i < queue->n && sender_at(queue, i)->size != size)
                i++;
        if (i == queue->n)
                return false;
        found = sender_at(queue, i);
        sure = !queue->doubtful && !may_be_swapped(&queue->last, found);
        for (size_t j = i + 1; j < queue->n && sender_at(queue, j)->usec - found->usec < RACE_USEC; j++)
                sure = sure && !may_be_swapped(found, sender_at(queue, j));
        queue->last = *found;
        queue->first = (queue->first + i + 1) % SENDERS_MAX;
        queue->n -= i + 1;
        if (sure)
                *ret = queue->last;
        return sure;
}

static void forget_before(SenderQueue *queue, uint64_t usec)
{
        while (queue->n > 0 && sender_at(queue, 0)->usec < usec) {
                queue->first = (queue->first + 1) % SENDERS_MAX;
                queue->n--;
        }
}

void senders_settle(SenderQueue *queue, uint64_t usec)
{
        forget_before(queue, queue->doubtful || usec < SEND_USEC ? usec : usec - SEND_USEC);
        if (queue->n == 0)
                queue->doubtful = false;
}
