/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What this host can enforce and observe. Each fact is tried, not looked up: a device is opened, a mount is
 * made, a job is run. Nothing of it stays. */

#include "base/error.h"
#include "json/json.h"

typedef enum DoctorState {
        DOCTOR_OK,
        DOCTOR_WEAK,    /* jobs run, but a kind of evidence or comfort is missing */
        DOCTOR_MISSING, /* jobs cannot run, or not with their limits */
        _DOCTOR_STATE_MAX,
} DoctorState;

extern const char *const doctor_state_names[_DOCTOR_STATE_MAX]; /* "ok", "weak", "missing" */

typedef struct DoctorFact {
        const char *name;
        DoctorState state;
        char text[512];     /* what was found */
        const char *remedy; /* what to do; NULL when all is well */
} DoctorFact;

typedef void (*DoctorHandler)(void *userdata, const DoctorFact *fact);

/* Tries everything in turn. policy: NULL: "default". */
void doctor_examine(const char *policy, DoctorHandler handler, void *userdata);

/* Whether this host has all that it takes to observe a kind of evidence, by its key in the receipt: then a
 * run that declares it a blind spot has lost it somewhere else. */
bool doctor_can_observe(const char *evidence);
