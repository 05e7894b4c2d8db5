/* SPDX-License-Identifier: Apache-2.0 */
/* A packet is read or refused; what was read is recorded and answered, and no answer asks for another. */

#include "fuzz.h"

#include "base/text.h"
#include "core/egress.h"

static void check_answer(const EgressReply *reply)
{
        Packet answer;

        assert(reply->size <= sizeof(reply->data));
        if (reply->size == 0)
                return;
        assert(packet_parse(reply->data, reply->size, &answer) == 0);
        assert(answer.size == reply->size);
        assert(packet_is_kernels(&answer) || answer.source.port == 53);
}

static void check_records(Egress *egress, uint64_t total)
{
        EgressEvidence evidence = { 0 };
        uint64_t listed = 0;
        char text[ENDPOINT_TEXT_MAX];

        egress_collect(egress, &evidence);
        for (size_t i = 0; i < evidence.n; i++) {
                const EgressRecord *record = &evidence.items[i];

                assert(!record->name || utf8_is_valid(record->name, strlen(record->name)));
                assert(endpoint_address(&record->remote, text) && endpoint_format(&record->remote, text));
                assert(egress_protocol(record));
                listed += record->count;
        }
        assert(evidence.total == total && listed == total);
        egress_evidence_clear(&evidence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(egress_freep) Egress *egress = egress_new();
        uint64_t total = 0;
        EgressReply reply;
        Packet packet;

        assert(egress);
        if (packet_parse(data, size, &packet) < 0)
                return 0;
        assert(packet.size <= size && packet.transport >= data &&
                        packet.transport + packet.transport_size == data + packet.size);
        /* Twice: the second time it is known. */
        for (unsigned i = 0; i < 2; i++) {
                if (egress_ignores(egress, &packet))
                        continue;
                assert(egress_packet(egress, &packet, 1, 0, &reply) == 0);
                check_answer(&reply);
                total++;
        }
        check_records(egress, total);
        return 0;
}
