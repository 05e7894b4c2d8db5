/* SPDX-License-Identifier: Apache-2.0 */
/* sockets: where the job listened, what it left open, what it closed. */
#include "core/receipt_parts.h"

#include <sys/socket.h>
#include "core/sockets.h"

static bool is_inet(const SocketRecord *record)
{
        return record->family == AF_INET || record->family == AF_INET6;
}

static int add_endpoint(cJSON *object, const char *side, const Endpoint *endpoint)
{
        char key[32], text[ENDPOINT_TEXT_MAX];
        int r;

        (void) snprintf(key, sizeof(key), "%s_address", side);
        r = json_add_text(object, key, endpoint_address(endpoint, text));
        (void) snprintf(key, sizeof(key), "%s_port", side);
        if (r < 0)
                return r;
        return endpoint->port ? json_add_u64(object, key, endpoint->port) : json_add_null(object, key);
}

/* Those of packet and netlink sockets have numbers of their own (packet(7), netlink(7)). */
static int add_protocol(cJSON *object, const SocketRecord *record)
{
        const char *name = is_inet(record) ? socket_protocol_name(record->protocol) : NULL;
        char number[32];

        (void) snprintf(number, sizeof(number), "%d", record->protocol);
        if (!name && (is_inet(record) || record->family == AF_PACKET || record->family == AF_NETLINK))
                name = number;
        return json_add_text(object, "protocol", name);
}

/* A name may hold NUL bytes, so it is no C string. */
static int add_name(cJSON *object, const SocketRecord *record)
{
        _cleanup_free_ char *base64 = NULL;
        bool exact = true;

        if (!record->name)
                return json_add_null(object, "name");
        exact = utf8_is_valid(record->name, record->name_size) &&
                !memchr(record->name, '\0', record->name_size);
        if (json_add_bytes(object, "name", record->name, record->name_size) < 0)
                return -ENOMEM;
        if (!exact) {
                base64 = base64_encode(record->name, record->name_size);
                if (!base64 || json_add_text(object, "name_base64", base64) < 0)
                        return -ENOMEM;
        }
        return json_add_bool(object, "abstract", record->abstract);
}

static int add_holder(cJSON *object, const SocketRecord *record)
{
        if ((record->inode ? json_add_u64(object, "inode", record->inode) : json_add_null(object, "inode")) <
                        0)
                return -ENOMEM;
        if (record->peer_inode && json_add_u64(object, "peer_inode", record->peer_inode) < 0)
                return -ENOMEM;
        if ((record->pid > 0 ? json_add_i64(object, "pid", record->pid) : json_add_null(object, "pid")) < 0)
                return -ENOMEM;
        return receipt_add_raw(object, "program", record->program);
}

static int add_socket(cJSON *list, const SocketRecord *record, bool listening)
{
        cJSON *object = json_add_object(list, NULL);

        if (!object || json_add_text(object, "family", socket_family_name(record->family)) < 0 ||
                        json_add_text(object, "type", socket_type_name(record->type)) < 0 ||
                        add_protocol(object, record) < 0)
                return -ENOMEM;
        if (!is_inet(record) && add_name(object, record) < 0)
                return -ENOMEM;
        if (is_inet(record) && (add_endpoint(object, "local", &record->local) < 0 ||
                                               add_endpoint(object, "remote", &record->remote) < 0))
                return -ENOMEM;
        if (json_add_text(object, "state", socket_state_name(record)) < 0 ||
                        (listening && json_add_bool(object, "left", record->left) < 0))
                return -ENOMEM;
        return add_holder(object, record);
}

int receipt_add_sockets(cJSON *receipt, const ReceiptSource *s)
{
        const SocketEvidence *sockets = &s->outcome->sockets;
        const struct {
                const char *key;
                const SocketList *list;
        } lists[] = {
                { "listening", &sockets->listening },
                { "leftover", &sockets->leftover },
                { "closed", &sockets->closed },
        };
        cJSON *object, *totals;

        if (!sockets->observed)
                return json_add_null(receipt, "sockets");
        object = json_add_object(receipt, "sockets");
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                cJSON *array = object ? json_add_array(object, lists[i].key) : NULL;

                if (!array)
                        return -ENOMEM;
                for (size_t j = 0; j < lists[i].list->n; j++)
                        if (add_socket(array, &lists[i].list->items[j], i == 0) < 0)
                                return -ENOMEM;
        }
        totals = json_add_object(object, "totals");
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                if (!totals || json_add_u64(totals, lists[i].key, lists[i].list->total) < 0)
                        return -ENOMEM;
        return json_add_u64(object, "lost", sockets->lost);
}
