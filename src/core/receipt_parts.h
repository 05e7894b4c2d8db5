/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of the receipt that have files of their own. Only receipt*.c include this. */

#include "core/receipt.h"

typedef struct ReceiptSource {
        const Plan *plan;
        const Outcome *outcome;
        const Judgement *judgement;
} ReceiptSource;

/* Adds its keys to the receipt; 0 or -ENOMEM. */
typedef int (*ReceiptPart)(cJSON *receipt, const ReceiptSource *source);

/* receipt_fs.c: what the job changed */
int receipt_add_fs(cJSON *receipt, const ReceiptSource *source);
int receipt_add_kept(cJSON *receipt, const ReceiptSource *source);

/* receipt_processes.c, receipt_sockets.c, receipt_egress.c, receipt_open.c (fds, ipc): what the observers saw
 */
int receipt_add_processes(cJSON *receipt, const ReceiptSource *source);
int receipt_add_sockets(cJSON *receipt, const ReceiptSource *source);
int receipt_add_egress(cJSON *receipt, const ReceiptSource *source);
int receipt_add_open(cJSON *receipt, const ReceiptSource *source);

/* receipt_run.c: under which conditions it ran, and what it used */
int receipt_add_limits(cJSON *receipt, const ReceiptSource *source);
int receipt_add_usage(cJSON *receipt, const ReceiptSource *source);
int receipt_add_facts(cJSON *receipt, const ReceiptSource *source);
int receipt_add_policy(cJSON *receipt, const ReceiptSource *source);
int receipt_add_host(cJSON *receipt, const ReceiptSource *source);
int receipt_add_timing(cJSON *receipt, const ReceiptSource *source);
/* Milliseconds with a fraction; null for UNKNOWN. */
int receipt_add_milliseconds(cJSON *object, const char *key, uint64_t usec);

/* receipt_stream.c. stdout, stderr: the clipped text; stdout_info, stderr_info: what else is known of it. */
int receipt_add_stream_text(cJSON *receipt, const char *key, const StreamRecord *stream);
int receipt_add_stream_info(cJSON *receipt, const char *key, const StreamRecord *stream);

/* receipt.c. key, and key_base64 where the bytes are not UTF-8, so that nothing is lost. */
int receipt_add_raw(cJSON *object, const char *key, const char *text);
