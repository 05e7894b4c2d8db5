/* SPDX-License-Identifier: Apache-2.0 */
/* egress: each attempt to leave, and totals over all of them, also those that are not listed. */
#include "core/receipt_parts.h"

static int add_record(cJSON *list, const EgressRecord *record)
{
        const Endpoint *remote = &record->remote;
        cJSON *item = json_add_object(list, NULL);
        char address[ENDPOINT_TEXT_MAX];

        if (!item || json_add_text(item, "protocol", egress_protocol(record)) < 0 ||
                        json_add_text(item, "address", endpoint_address(remote, address)) < 0 ||
                        json_add_u64(item, "port", remote->port > 0 ? remote->port : UNKNOWN) < 0 ||
                        json_add_text(item, "name", record->name) < 0 ||
                        json_add_u64(item, "pid", record->pid > 0 ? (uint64_t) record->pid : UNKNOWN) < 0 ||
                        receipt_add_raw(item, "program", record->program) < 0 ||
                        json_add_u64(item, "count", record->count) < 0)
                return -ENOMEM;
        return receipt_add_milliseconds(item, "first_ms", record->first_usec);
}

static int add_info(cJSON *receipt, const EgressEvidence *egress)
{
        cJSON *info = json_add_object(receipt, "egress_info");
        uint64_t listed = 0;

        for (size_t i = 0; i < egress->n; i++)
                listed += egress->items[i].count;
        if (!info || json_add_u64(info, "total", egress->total) < 0 ||
                        json_add_bool(info, "truncated", listed < egress->total) < 0 ||
                        json_add_u64(info, "lost", egress->lost) < 0 ||
                        json_add_u64(info, "refused_families", egress->refused_families) < 0)
                return -ENOMEM;
        return json_add_u64(info, "refused_raw", egress->refused_raw);
}

int receipt_add_egress(cJSON *receipt, const ReceiptSource *s)
{
        const EgressEvidence *egress = &s->outcome->egress;
        cJSON *list;

        if (!egress->observed)
                return json_add_null(receipt, "egress") < 0 ? -ENOMEM : json_add_null(receipt, "egress_info");
        list = json_add_array(receipt, "egress");
        for (size_t i = 0; list && i < egress->n; i++)
                if (add_record(list, &egress->items[i]) < 0)
                        return -ENOMEM;
        return list ? add_info(receipt, egress) : -ENOMEM;
}
