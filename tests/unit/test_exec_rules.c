/* SPDX-License-Identifier: Apache-2.0 */
#include "core/exec_rules.h"

#include "test.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

static char *none[] = { NULL }, *curl[] = { (char *) "curl", NULL },
            *curls[] = { (char *) "curl*", (char *) "/usr/bin/nc*", NULL },
            *merged[] = { (char *) "/bin/seq", (char *) "/lib64/ld*", (char *) "/srv/x", NULL },
            *digest[] = { (char *) "wget", (char *) "sha256:" A, NULL },
            *python[] = { (char *) "/usr/bin/python3*", (char *) "sha256:" B, NULL };

TEST(rules)
{
        static const struct {
                char **deny, **allow;
                const char *path, *called, *sha256;
                ExecAnswer answer;
                const char *rule;
        } cases[] = {
                { NULL, NULL, "/usr/bin/curl", NULL, NULL, EXEC_ALLOWED, NULL },
                { curl, NULL, "/usr/bin/curl", NULL, NULL, EXEC_DENIED, "curl" },
                { curl, NULL, "/srv/w/curl", NULL, NULL, EXEC_DENIED, "curl" },
                { curl, NULL, "/srv/w/curly", NULL, NULL, EXEC_ALLOWED, NULL },
                { curl, NULL, "/srv/w/CURL", NULL, NULL, EXEC_ALLOWED, NULL }, /* file names have case */
                { curls, NULL, "/x/curl-config", NULL, NULL, EXEC_DENIED, "curl*" },
                { curls, NULL, "/usr/bin/nc.openbsd", NULL, NULL, EXEC_DENIED, "/usr/bin/nc*" },
                { curls, NULL, "/srv/nc.openbsd", NULL, NULL, EXEC_ALLOWED, NULL },
                { curls, NULL, "/usr/bin/nc/x", NULL, NULL, EXEC_ALLOWED, NULL },
                /* by the name it was called by, which counts only against it */
                { curl, NULL, "/usr/bin/busybox", "curl", NULL, EXEC_DENIED, "curl" },
                { curl, NULL, "/usr/bin/busybox", "../usr/bin/curl", NULL, EXEC_DENIED, "curl" },
                { curls, NULL, "/etc/alternatives/x", "/usr/bin/nc", NULL, EXEC_DENIED, "/usr/bin/nc*" },
                { NULL, curl, "/srv/evil", "curl", NULL, EXEC_DENIED, NULL },
                /* by the path of a merged /usr */
                { merged, NULL, "/usr/bin/seq", "/usr/bin/seq", NULL, EXEC_DENIED, "/bin/seq" },
                { merged, NULL, "/usr/local/bin/seq", NULL, NULL, EXEC_ALLOWED, NULL },
                { NULL, merged, "/usr/lib64/ld.so", NULL, NULL, EXEC_ALLOWED, "/lib64/ld*" },
                { NULL, merged, "/usr/srv/x", NULL, NULL, EXEC_DENIED, NULL },
                /* a name decides without the digest, and a digest is asked for only where there is a rule */
                { digest, NULL, "/usr/bin/wget", NULL, NULL, EXEC_DENIED, "wget" },
                { digest, NULL, "/usr/bin/ls", NULL, NULL, EXEC_NEEDS_HASH, NULL },
                { digest, NULL, "/usr/bin/ls", NULL, A, EXEC_DENIED, "sha256:" A },
                { digest, NULL, NULL, NULL, A, EXEC_DENIED, "sha256:" A }, /* a memfd */
                { digest, NULL, "/usr/bin/ls", NULL, B, EXEC_ALLOWED, NULL },
                /* an allow list */
                { NULL, none, "/usr/bin/ls", NULL, NULL, EXEC_DENIED, NULL },
                { NULL, python, "/usr/bin/python3.11", NULL, NULL, EXEC_ALLOWED, "/usr/bin/python3*" },
                { NULL, python, "/srv/python3", NULL, NULL, EXEC_NEEDS_HASH, NULL },
                { NULL, python, "/srv/python3", NULL, B, EXEC_ALLOWED, "sha256:" B },
                { NULL, python, "/srv/python3", NULL, A, EXEC_DENIED, NULL },
                { NULL, curl, "/usr/bin/ls", NULL, NULL, EXEC_DENIED, NULL },
                { NULL, curl, NULL, NULL, NULL, EXEC_DENIED, NULL },
                /* both: what is denied stays so, and the digest of the deny list is asked for first */
                { curl, curl, "/usr/bin/curl", NULL, NULL, EXEC_DENIED, "curl" },
                { digest, python, "/usr/bin/python3", NULL, NULL, EXEC_NEEDS_HASH, NULL },
                { digest, python, "/usr/bin/python3", NULL, A, EXEC_DENIED, "sha256:" A },
                { digest, python, "/usr/bin/python3", NULL, B, EXEC_ALLOWED, "/usr/bin/python3*" },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                ExecRules rules = { .deny = cases[i].deny, .allow = cases[i].allow };
                const char *rule = "untouched";
                ExecAsked asked = { cases[i].path, cases[i].called, cases[i].sha256 };
                ExecAnswer answer = exec_rules_match(&rules, &asked, &rule);

                (void) test_check(answer == cases[i].answer && streq_ptr(rule, cases[i].rule), __FILE__,
                                __LINE__, "case %zu: %d by %s", i, (int) answer, rule ? rule : "none");
        }
}

TEST(empty)
{
        CHECK(exec_rules_are_empty(&(ExecRules){ 0 }));
        CHECK(exec_rules_are_empty(&(ExecRules){ .deny = none }));
        CHECK(!exec_rules_are_empty(&(ExecRules){ .allow = none }));
        CHECK(!exec_rules_are_empty(&(ExecRules){ .deny = curl }));
}

TEST_MAIN
