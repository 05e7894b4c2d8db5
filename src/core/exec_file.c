/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: ELF by elf(5); scripts by execve(2), "Interpreter scripts" (the kernel reads 255 bytes of the
 * line); MZ and Mach-O only by their magic numbers. */
#include "core/exec_file.h"

#include <elf.h>

static const struct {
        uint16_t number;
        const char *name; /* as uname -m has it */
} machines[] = {
        { EM_X86_64, "x86_64" },
        { EM_386, "i686" },
        { EM_AARCH64, "aarch64" },
        { EM_ARM, "arm" },
        { EM_RISCV, "riscv" },
        { EM_PPC64, "ppc64" },
        { EM_PPC, "ppc" },
        { EM_S390, "s390x" },
        { EM_MIPS, "mips" },
        { EM_SPARCV9, "sparc64" },
        { EM_LOONGARCH, "loongarch64" },
};

#define ELF_TYPE_OFFSET    offsetof(Elf64_Ehdr, e_type)
#define ELF_MACHINE_OFFSET offsetof(Elf64_Ehdr, e_machine)

/* Fields before e_version lie at the same place in both classes. */
static_assert(offsetof(Elf32_Ehdr, e_machine) == ELF_MACHINE_OFFSET, "e_machine");

static uint16_t elf_u16(const uint8_t *head, size_t offset)
{
        if (head[EI_DATA] == ELFDATA2MSB)
                return (uint16_t) (head[offset] << 8 | head[offset + 1]);
        return (uint16_t) (head[offset + 1] << 8 | head[offset]);
}

/* A machine of uname -m runs programs of its own name and of its variants: armv7l, ppc64le, i586, riscv64. */
static bool same_machine(const char *host, const char *program)
{
        if (startswith(program, "i6"))
                return host[0] == 'i' && streq(host + 2, "86");
        return startswith(host, program) && !(streq(program, "ppc") && startswith(host, "ppc64"));
}

static void look_elf(ExecFile *file, const uint8_t *head, size_t size, const char *host)
{
        uint16_t type, number;

        file->look = EXEC_LOOK_ELF;
        if (size < ELF_MACHINE_OFFSET + 2)
                return;
        file->bits = head[EI_CLASS] == ELFCLASS64 ? 64 : head[EI_CLASS] == ELFCLASS32 ? 32 : 0;
        type = elf_u16(head, ELF_TYPE_OFFSET);
        number = elf_u16(head, ELF_MACHINE_OFFSET);
        file->object = type != ET_EXEC && type != ET_DYN;
        for (size_t i = 0; i < ELEMENTSOF(machines); i++)
                if (machines[i].number == number)
                        file->machine = machines[i].name;
        /* A machine that is not in the table: no host of ours is one. */
        file->foreign = host && (!file->machine || !same_machine(host, file->machine));
}

static void look_script(ExecFile *file, const char *head, size_t size)
{
        const char *end = memchr(head, '\n', size), *line_end, *p = head + STRLEN("#!");

        file->look = EXEC_LOOK_SCRIPT;
        file->line_cut = !end;
        line_end = end ? end : head + size;
        if (end && end > p && end[-1] == '\r') {
                file->carriage_return = true;
                line_end--;
        }
        while (p < line_end && (*p == ' ' || *p == '\t'))
                p++;
        file->interpreter = p;
        while (p < line_end && *p != ' ' && *p != '\t' && *p != '\0')
                p++;
        file->interpreter_size = (size_t) (p - file->interpreter);
}

static bool is_text(const uint8_t *head, size_t size)
{
        static const char controls[] = { '\t', '\n', '\r', '\f', '\v', '\b', '\033' };

        for (size_t i = 0; i < size; i++)
                if ((head[i] < 0x20 && !memchr(controls, head[i], sizeof(controls))) || head[i] == 0x7f)
                        return false;
        return true;
}

static bool has_prefix(const uint8_t *head, size_t size, const char *prefix, size_t length)
{
        return size >= length && memcmp(head, prefix, length) == 0;
}

static bool is_macos(const uint8_t *head, size_t size)
{
        static const char magics[][4] = {
                { '\xfe', '\xed', '\xfa', '\xce' },
                { '\xfe', '\xed', '\xfa', '\xcf' },
                { '\xce', '\xfa', '\xed', '\xfe' },
                { '\xcf', '\xfa', '\xed', '\xfe' },
                { '\xca', '\xfe', '\xba', '\xbe' },
        };

        for (size_t i = 0; i < ELEMENTSOF(magics); i++)
                if (has_prefix(head, size, magics[i], sizeof(magics[i])))
                        return true;
        return false;
}

ExecFile exec_file_look(const uint8_t *head, size_t size, bool known, const char *machine)
{
        ExecFile file = { .look = EXEC_LOOK_UNKNOWN };

        if (size == 0)
                file.look = known ? EXEC_LOOK_EMPTY : EXEC_LOOK_UNKNOWN;
        else if (has_prefix(head, size, ELFMAG, SELFMAG))
                look_elf(&file, head, size, machine);
        else if (has_prefix(head, size, "#!", 2))
                look_script(&file, (const char *) head, size);
        else if (is_macos(head, size))
                file.look = EXEC_LOOK_MACOS;
        else if (has_prefix(head, size, "MZ", 2) && !is_text(head, size))
                file.look = EXEC_LOOK_WINDOWS;
        else if (is_text(head, size)) {
                file.look = EXEC_LOOK_TEXT;
                file.byte_order_mark = has_prefix(head, size, "\xef\xbb\xbf#!", 5);
        }
        return file;
}
