/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A part of explain.c: what happened, in short. Only explain*.c include this. */

#include "core/receipt_view.h"

#define EXPLAIN_TEXT_MAX 1024

/* Appends {name, text} to list for each kind of evidence that has something to say. 0 or -ENOMEM. */
int explain_add_facts(cJSON *list, const cJSON *receipt);
