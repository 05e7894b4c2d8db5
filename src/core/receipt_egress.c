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

static const char *const refused_names[_REFUSED_KIND_MAX] = {
        [REFUSED_FAMILY] = "family",
        [REFUSED_RAW] = "raw",
        [REFUSED_IO_URING] = "io_uring",
};

static int add_refused(cJSON *info, const EgressEvidence *egress)
{
        cJSON *totals = json_add_object(info, "refused_totals"), *list = json_add_array(info, "refused");

        for (RefusedKind kind = 0; totals && kind < _REFUSED_KIND_MAX; kind++)
                if (json_add_u64(totals, refused_names[kind], egress->refused_total[kind]) < 0)
                        return -ENOMEM;
        for (size_t i = 0; list && i < egress->n_refused; i++) {
                const RefusedRecord *record = &egress->refused[i];
                cJSON *item = json_add_object(list, NULL);

                if (!item || json_add_text(item, "what", refused_names[record->kind]) < 0 ||
                                json_add_i64(item, "pid", record->pid) < 0 ||
                                receipt_add_raw(item, "program", record->program) < 0 ||
                                json_add_u64(item, "count", record->count) < 0 ||
                                receipt_add_milliseconds(item, "first_ms", record->first_usec) < 0)
                        return -ENOMEM;
        }
        return totals && list ? 0 : -ENOMEM;
}

static int add_info(cJSON *receipt, const EgressEvidence *egress)
{
        cJSON *info = json_add_object(receipt, "egress_info");
        uint64_t listed = 0;

        for (size_t i = 0; i < egress->n; i++)
                listed += egress->items[i].count;
        if (!info || json_add_u64(info, "total", egress->total) < 0 ||
                        json_add_bool(info, "truncated", listed < egress->total) < 0 ||
                        json_add_u64(info, "lost", egress->lost) < 0)
                return -ENOMEM;
        return add_refused(info, egress);
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
