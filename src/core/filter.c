/* SPDX-License-Identifier: Apache-2.0 */
#include "core/filter.h"

typedef struct Machine {
        uint32_t a, x, memory[BPF_MEMWORDS];
} Machine;

static int load(const struct sock_filter *i, const struct seccomp_data *data, Machine *m)
{
        uint32_t value;

        switch (BPF_MODE(i->code)) {
        case BPF_IMM:
                value = i->k;
                break;
        case BPF_LEN:
                value = sizeof(*data);
                break;
        case BPF_MEM:
                if (i->k >= BPF_MEMWORDS)
                        return -EINVAL;
                value = m->memory[i->k];
                break;
        case BPF_ABS:
                if (i->k % sizeof(uint32_t) != 0 || i->k > sizeof(*data) - sizeof(uint32_t))
                        return -EINVAL;
                memcpy(&value, (const char *) data + i->k, sizeof(value));
                break;
        default:
                return -EINVAL;
        }
        if (BPF_SIZE(i->code) != BPF_W)
                return -EINVAL;
        *(BPF_CLASS(i->code) == BPF_LD ? &m->a : &m->x) = value;
        return 0;
}

static int store(const struct sock_filter *i, Machine *m)
{
        if (i->k >= BPF_MEMWORDS)
                return -EINVAL;
        m->memory[i->k] = BPF_CLASS(i->code) == BPF_ST ? m->a : m->x;
        return 0;
}

static int calculate(const struct sock_filter *i, Machine *m)
{
        uint32_t with = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

        switch (BPF_OP(i->code)) {
        case BPF_ADD:
                m->a += with;
                return 0;
        case BPF_SUB:
                m->a -= with;
                return 0;
        case BPF_MUL:
                m->a *= with;
                return 0;
        case BPF_DIV:
                m->a = with == 0 ? 0 : m->a / with;
                return 0;
        case BPF_AND:
                m->a &= with;
                return 0;
        case BPF_OR:
                m->a |= with;
                return 0;
        case BPF_XOR:
                m->a ^= with;
                return 0;
        case BPF_LSH:
                m->a = with < 32 ? m->a << with : 0;
                return 0;
        case BPF_RSH:
                m->a = with < 32 ? m->a >> with : 0;
                return 0;
        case BPF_NEG:
                m->a = -m->a;
                return 0;
        default:
                return -EINVAL;
        }
}

/* How many instructions are passed over. */
static int jump(const struct sock_filter *i, const Machine *m, uint32_t *ret)
{
        uint32_t with = BPF_SRC(i->code) == BPF_X ? m->x : i->k;
        bool holds;

        switch (BPF_OP(i->code)) {
        case BPF_JA:
                *ret = i->k;
                return 0;
        case BPF_JEQ:
                holds = m->a == with;
                break;
        case BPF_JGT:
                holds = m->a > with;
                break;
        case BPF_JGE:
                holds = m->a >= with;
                break;
        case BPF_JSET:
                holds = (m->a & with) != 0;
                break;
        default:
                return -EINVAL;
        }
        *ret = holds ? i->jt : i->jf;
        return 0;
}

static int step(const struct sock_filter *i, const struct seccomp_data *data, Machine *m, uint32_t *ret_skip)
{
        *ret_skip = 0;
        switch (BPF_CLASS(i->code)) {
        case BPF_LD:
        case BPF_LDX:
                return load(i, data, m);
        case BPF_ST:
        case BPF_STX:
                return store(i, m);
        case BPF_ALU:
                return calculate(i, m);
        case BPF_JMP:
                return jump(i, m, ret_skip);
        case BPF_MISC:
                if (BPF_MISCOP(i->code) == BPF_TAX)
                        m->x = m->a;
                else
                        m->a = m->x;
                return 0;
        default:
                return -EINVAL;
        }
}

/* Jumps lead forward only, so it ends. */
int filter_run(const struct sock_filter *program, size_t n, const struct seccomp_data *data, uint32_t *ret)
{
        Machine m = { 0 };

        for (size_t at = 0; at < n; at++) {
                const struct sock_filter *i = &program[at];
                uint32_t skip;
                int r;

                if (BPF_CLASS(i->code) == BPF_RET) {
                        *ret = BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
                        return 0;
                }
                r = step(i, data, &m, &skip);
                if (r < 0)
                        return r;
                at += skip;
        }
        return -EINVAL;
}
