/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is kept of a run for `qscope apply`, qscope.layer/v1: the contents of the files that it changed, and
 * beside them which receipt tells of them. How much of that and of receipts is kept, and what goes first.
 * Pure.
 *
 *   layer.json = { schema, run_id, job_id, verdict, workspace, receipt_sha256, files, bytes, kept_usec }
 */

#include "base/hash.h"
#include "json/json.h"

#define KEPT_CONFIG   "/etc/qscope/keep.json"
#define KEPT_FILE_MAX KIB(64) /* of layer.json, and of the configuration */

/* Whether a run's layer was kept. */
typedef enum KeptState {
        KEPT_NOTHING,    /* there is nothing that could be applied */
        KEPT_YES,        /* until it is applied, discarded or aged */
        KEPT_OFF,        /* it was not wanted */
        KEPT_TOO_LARGE,  /* more than is kept of one run */
        KEPT_INCOMPLETE, /* not every change is listed: nobody could say what is being applied */
        KEPT_FAILED,     /* the host could not: no space, no right, no rules */
        _KEPT_STATE_MAX,
} KeptState;

extern const char *const kept_state_names[_KEPT_STATE_MAX]; /* "nothing", "yes", … */

/* Why there is no layer of a run with this in its receipt (kept.state; NULL: there is none), and what helps.
 */
const char *kept_state_sentence(const char *state);

/* For the receipt. */
typedef struct KeptRecord {
        KeptState state;
        uint64_t files, bytes; /* contents, each counted once */
} KeptRecord;

/* One kept layer, as its layer.json has it. */
typedef struct KeptInfo {
        char *run_id, *job_id, *verdict;
        char *workspace; /* absolute, links resolved; raw bytes */
        char *receipt_sha256;
        uint64_t files, bytes;
        uint64_t kept_usec; /* CLOCK_REALTIME */
} KeptInfo;

void kept_info_clear(KeptInfo *info);
/* NULL when out of memory. */
char *kept_info_print(const KeptInfo *info);
int kept_info_parse(const char *text, size_t size, const char *name, KeptInfo *ret, Error *e);

/* --- how much is kept --- */

/* UNKNOWN: no bound. */
typedef struct KeepRules {
        bool layers;    /* of runs that do not say */
        uint64_t each;  /* bytes of one layer */
        uint64_t count; /* layers */
        uint64_t total; /* bytes of all layers */
        uint64_t age;   /* usec, of a layer */
        uint64_t receipt_total, receipt_age;
} KeepRules;

extern const KeepRules keep_rules_default;

/* The configuration (KEPT_CONFIG): values of keys that it does not have stay as they are in rules. */
int keep_rules_parse(const char *text, size_t size, const char *name, KeepRules *rules, Error *e);

/* Something that may go. */
typedef struct KeptItem {
        const char *name; /* borrowed */
        uint64_t usec;    /* CLOCK_REALTIME when it was made */
        uint64_t bytes;
        bool in_use; /* stays, whatever else, and does not count */
        bool remove; /* the answer */
} KeptItem;

/* Marks what goes: what is older than age, and the oldest while they are more than count or total. Sorts the
 * items, the oldest first. What bears a time to come is as old as now. */
void keep_choose(KeptItem *items, size_t n, uint64_t now_usec, uint64_t count, uint64_t total, uint64_t age);
