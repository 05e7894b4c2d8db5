/* SPDX-License-Identifier: Apache-2.0 */
#include "core/filter.h"

#include <linux/audit.h>
#include <sys/syscall.h>

#include "test.h"

#define ALLOW     BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define LOAD_NR   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))

static int64_t run(const struct sock_filter *program, size_t n, int nr)
{
        const struct seccomp_data data = { .nr = nr, .arch = AUDIT_ARCH_X86_64, .args = { 5, 6 } };
        uint32_t answer;
        int r = filter_run(program, n, &data, &answer);

        return r < 0 ? r : (int64_t) answer;
}

#define RUN(program, nr) run(program, ELEMENTSOF(program), nr)

/* As systemd writes them: the architecture, then a chain of calls that are allowed, then the error. */
TEST(an_allow_list)
{
        static const struct sock_filter program[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 4),
                LOAD_NR,
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 2, 0),
                BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_write, 0, 2),
                BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_write, 1, 0),
                ALLOW,
                REFUSE(EPERM),
        };

        CHECK_EQ(RUN(program, SYS_read), SECCOMP_RET_ALLOW);
        CHECK_EQ(RUN(program, SYS_write), SECCOMP_RET_ALLOW);
        CHECK_EQ(RUN(program, SYS_mount), SECCOMP_RET_ERRNO | EPERM);
}

TEST(arithmetic)
{
        static const struct sock_filter program[] = {
                LOAD_NR,
                BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 7),
                BPF_STMT(BPF_ST, 3),
                BPF_STMT(BPF_LDX | BPF_W | BPF_MEM, 3),
                BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
                BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 1),
                BPF_STMT(BPF_MISC | BPF_TAX, 0),
                BPF_STMT(BPF_LD | BPF_IMM, 1000),
                BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0),
                BPF_STMT(BPF_ALU | BPF_LSH | BPF_K, 4),
                BPF_STMT(BPF_ALU | BPF_OR | BPF_K, 3),
                BPF_STMT(BPF_RET | BPF_A, 0),
        };

        CHECK_EQ(RUN(program, 3), ((1000 / 99) << 4) | 3);
}

/* Nothing that the kernel would refuse is taken, and nothing runs for ever. */
TEST(bad_programs)
{
        static const struct sock_filter no_return[] = { LOAD_NR },
                                        beyond[] = { BPF_JUMP(BPF_JMP | BPF_JA, 0xffffffff, 0, 0), ALLOW },
                                        offset[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), ALLOW },
                                        odd[] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2), ALLOW },
                                        half[] = { BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), ALLOW },
                                        memory[] = { BPF_STMT(BPF_ST, BPF_MEMWORDS), ALLOW },
                                        indirect[] = { BPF_STMT(BPF_LD | BPF_W | BPF_IND, 0), ALLOW };

        CHECK_EQ(RUN(no_return, 0), -EINVAL);
        CHECK_EQ(RUN(beyond, 0), -EINVAL);
        CHECK_EQ(RUN(offset, 0), -EINVAL);
        CHECK_EQ(RUN(odd, 0), -EINVAL);
        CHECK_EQ(RUN(half, 0), -EINVAL);
        CHECK_EQ(RUN(memory, 0), -EINVAL);
        CHECK_EQ(RUN(indirect, 0), -EINVAL);
        CHECK_EQ(run(NULL, 0, 0), -EINVAL);
}

TEST_MAIN
