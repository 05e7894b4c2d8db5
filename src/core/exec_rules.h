/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* deny_exec and allow_exec of a policy: which programs may be started anywhere in a job. Pure: whoever is
 * asked (before the program runs) says what the file is and gets the answer with the rule that gave it.
 *
 * A rule is a base name ("curl", an fnmatch(3) pattern), an absolute path ("/usr/bin/python3*", a pattern
 * whose
 * "*" does not cross a slash), or the digest of the file's bytes ("sha256:…"). Only a digest finds a renamed
 * copy. A name is that of the file that is executed, and for deny_exec also the one that it was called by: of
 * a link (python3, nc) nobody knows where it leads. argv[0] is neither. /bin and its like are in /usr.
 *
 * deny_exec goes first. Where allow_exec is given, what no rule of it names is denied; whoever asks about
 * scripts, interpreters and the dynamic loader one by one gets an answer for each. */

#include "base/text.h"
#include "core/reader.h"

#define EXEC_RULES_MAX 1024u /* in one list */

typedef struct ExecRules {
        char **deny;  /* as written, digests in lower case; NULL: none */
        char **allow; /* NULL: not given, everything; an empty list: nothing */
} ExecRules;

typedef enum ExecAnswer {
        EXEC_ALLOWED,
        EXEC_DENIED,
        EXEC_NEEDS_HASH, /* neither name nor path decides: ask again with the digest */
} ExecAnswer;

typedef struct ExecAsked {
        const char *path;   /* absolute, as the job sees it; NULL: the file has none (a memfd) */
        const char *called; /* what was given to execve(2), which a job can forge; NULL: unknown */
        const char *sha256; /* 64 lower-case hex digits; NULL: not known yet */
} ExecAsked;

/* *ret_rule: the rule that decided; NULL: no rule of allow_exec names it, or there is none. Borrowed. */
ExecAnswer exec_rules_match(const ExecRules *rules, const ExecAsked *asked, const char **ret_rule);

bool exec_rules_are_empty(const ExecRules *rules);

/* Reads a list of rules; target is a char ***. */
int exec_rules_read(const Reader *r, const JsonPath *at, const cJSON *value, void *target);
