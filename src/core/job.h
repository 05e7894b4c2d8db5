/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The job file, qscope.job/v1: what it may say, read strictly. Pure: no files are opened here. */

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/limits.h"
#include "json/json.h"

#define JOB_FILE_MAX    MIB(1)
#define JOB_ARGV_MAX    65536u
#define JOB_FILES_MAX   4096u
#define JOB_TIMEOUT_MAX (UINT64_C(7) * 24 * 3600 * USEC_PER_SEC)
#define JOB_PATTERN_MAX 1024u /* bytes of a regular expression */

typedef enum Workspace {
        WORKSPACE_OVERLAY,
        WORKSPACE_FRESH,
        _WORKSPACE_MAX,
        _WORKSPACE_INVALID = -EINVAL
} Workspace;
typedef enum Network { NETWORK_NONE, NETWORK_HOST, _NETWORK_MAX, _NETWORK_INVALID = -EINVAL } Network;
typedef enum Posture { POSTURE_ISOLATED, POSTURE_BOUNDED, _POSTURE_MAX, _POSTURE_INVALID = -EINVAL } Posture;

extern const char *const workspace_names[_WORKSPACE_MAX];
extern const char *const network_names[_NETWORK_MAX];
extern const char *const posture_names[_POSTURE_MAX];

const char *workspace_to_string(Workspace w);
const char *network_to_string(Network n);
const char *posture_to_string(Posture p);

/* Bytes given in the job, or a path to take them from; neither: nothing given. */
typedef struct JobInput {
        uint8_t *data; /* not NULL: size bytes (a NUL follows them) */
        size_t size;
        char *path; /* of {"file": …} or "source" */
} JobInput;

typedef struct JobFile {
        char *path; /* relative to the workspace, normalised, no "..", never empty */
        JobInput input;
        unsigned mode; /* permission bits, default 0644 */
} JobFile;

/* A set of exit statuses; any: every exit counts as expected, a signal or a timeout does not. */
typedef struct ExitSet {
        bool any;
        uint8_t bits[32];
} ExitSet;

typedef struct ExpectStream {
        char *equals, *contains, *matches, *sha256; /* NULL: not asked */
        cJSON *json;                                /* the output must parse to this; NULL: not asked */
} ExpectStream;

typedef struct ExpectFile {
        char *path;   /* relative to the workspace or absolute */
        int exists;   /* -1: not asked, 0, 1 */
        char *equals; /* whole content */
        char *sha256;
} ExpectFile;

typedef struct Expect {
        ExpectStream out, err;
        ExpectFile *files;
        size_t n_files;
        uint64_t max_duration_usec; /* UNKNOWN: not asked */
        bool allow_leftovers;
        uint16_t *allow_listen;
        size_t n_allow_listen;
        char **allow_egress; /* "host-or-cidr:port" */
} Expect;

typedef struct Job {
        char sha256[HASH_HEX_MAX]; /* of the document in its canonical form (RFC 8785's, as far as it goes) */
        char *job_id;              /* NULL: to be generated */
        char **argv;
        char *cwd;           /* NULL: not given */
        Workspace workspace; /* _WORKSPACE_INVALID: not given */
        JobFile *files;
        size_t n_files;
        bool has_stdin;
        JobInput stdin_input;
        uint64_t timeout_usec; /* UNKNOWN: not given */
        cJSON *expected_exit;  /* as written, for the receipt; NULL: not given */
        ExitSet exits;         /* what it means; {0} when not given */
        char **env_allowlist;  /* NULL: not given; an empty list is a list with only its end */
        char **env;            /* "NAME=value" */
        char **allow_changes;  /* NULL: not given */
        Limits limits;
        Network network; /* _INVALID: not given */
        Posture posture; /* _INVALID: not given */
        Expect expect;
        char *policy; /* NULL: not given */
        char *rationale;
        cJSON *meta;
        cJSON *extra;     /* object of all x_ keys, or NULL */
        bool own;         /* its file is the caller's, and nobody else could write it; set by who read it */
        char **given;     /* the keys that stand in the job file */
        char **defaulted; /* of the others, those whose value is the policy's "default" */
} Job;

/* Reads a job file's text. name stands in error sentences ("job.json: line 3: job.timeout_sec: …").
 * 0; -EINVAL with a sentence; -E2BIG when over JOB_FILE_MAX; -ENOMEM. */
int job_parse(const char *text, size_t size, const char *name, Job **ret, Error *e);

/* The same from a document that was made here: sentences name no line. */
int job_read(const cJSON *document, const char *name, Job **ret, Error *e);

/* Reads one key of a policy's "default" into a job: at->key is one of those that a policy may give a value
 * for (cwd workspace expected_exit env_allowlist env network posture expect). */
struct Reader;
int job_read_default(const struct Reader *r, const JsonPath *at, const cJSON *value, Job *job);

/* Gives the job what it does not say itself. defaults: an object of such keys, read before; may be NULL. 0 or
 * -ENOMEM. */
int job_take_defaults(Job *job, const cJSON *defaults);

/* An empty job with every key "not given", for the command line. */
Job *job_new(void);
Job *job_free(Job *job);
DEFINE_CLEANUP(Job *, job_free)

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127} */
bool job_id_is_valid(const char *id);

/* [A-Za-z0-9][A-Za-z0-9_-]{0,63}: a name, never a path. */
bool policy_name_is_valid(const char *name);

bool exit_set_contains(const ExitSet *set, int status);
