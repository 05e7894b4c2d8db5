/* SPDX-License-Identifier: Apache-2.0 */
#include "core/evidence.h"

#include <arpa/inet.h>

#include "base/text.h"

const char *endpoint_address(const Endpoint *endpoint, char text[static ENDPOINT_TEXT_MAX])
{
        if (endpoint->family != AF_INET && endpoint->family != AF_INET6)
                return NULL;
        return inet_ntop(endpoint->family, endpoint->address, text, ENDPOINT_TEXT_MAX);
}

const char *endpoint_format(const Endpoint *endpoint, char text[static ENDPOINT_TEXT_MAX])
{
        char address[ENDPOINT_TEXT_MAX];
        int most = INET6_ADDRSTRLEN;

        if (!endpoint_address(endpoint, address))
                (void) snprintf(text, ENDPOINT_TEXT_MAX, "?");
        else if (endpoint->port == 0)
                (void) snprintf(text, ENDPOINT_TEXT_MAX, "%.*s", most, address);
        else
                (void) snprintf(text, ENDPOINT_TEXT_MAX,
                                endpoint->family == AF_INET ? "%.*s:%u" : "[%.*s]:%u", most, address,
                                endpoint->port);
        return text;
}

const char *egress_protocol(const EgressRecord *record)
{
        static const char *const names[_EGRESS_PROTOCOL_MAX] = {
                [EGRESS_TCP] = "tcp",
                [EGRESS_UDP] = "udp",
                [EGRESS_DNS] = "dns",
                [EGRESS_ICMP] = "icmp",
                [EGRESS_OTHER] = "other",
        };

        return names[record->protocol];
}

void process_tree_clear(ProcessTree *tree)
{
        for (size_t i = 0; i < tree->n; i++) {
                ProcessNode *node = &tree->items[i];

                for (size_t j = 0; j < node->n_runs; j++) {
                        free(node->runs[j].path);
                        strv_free(node->runs[j].argv);
                }
                free(node->runs);
                free(node->origin);
        }
        free(tree->items);
        *tree = (ProcessTree){ 0 };
}

void socket_record_clear(SocketRecord *record)
{
        free(record->name);
        free(record->program);
        *record = (SocketRecord){ 0 };
}

static void socket_list_clear(SocketList *list)
{
        for (size_t i = 0; i < list->n; i++)
                socket_record_clear(&list->items[i]);
        free(list->items);
}

void socket_evidence_clear(SocketEvidence *sockets)
{
        socket_list_clear(&sockets->listening);
        socket_list_clear(&sockets->leftover);
        socket_list_clear(&sockets->closed);
        *sockets = (SocketEvidence){ 0 };
}

void egress_evidence_clear(EgressEvidence *egress)
{
        for (size_t i = 0; i < egress->n; i++) {
                free(egress->items[i].name);
                free(egress->items[i].program);
        }
        free(egress->items);
        for (size_t i = 0; i < egress->n_refused; i++)
                free(egress->refused[i].program);
        free(egress->refused);
        *egress = (EgressEvidence){ 0 };
}

void fd_list_clear(FdList *fds)
{
        for (size_t i = 0; i < fds->n; i++)
                free(fds->items[i].target);
        free(fds->items);
        *fds = (FdList){ 0 };
}

void ipc_list_clear(IpcList *ipc)
{
        for (size_t i = 0; i < ipc->n; i++)
                free(ipc->items[i].name);
        free(ipc->items);
        *ipc = (IpcList){ 0 };
}
