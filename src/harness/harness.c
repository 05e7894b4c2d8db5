/* SPDX-License-Identifier: Apache-2.0 */
/* Calls solution() of candidate.c, from JSON text to JSON text; argv[1]: output, input or both. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *solution(const char *input);

static char *read_all(FILE *in)
{
        size_t used = 0, room = 1 << 16, n;
        char *text = malloc(room), *larger;

        while (text && (n = fread(text + used, 1, room - used - 1, in)) > 0) {
                used += n;
                larger = room - used < 2 ? realloc(text, room *= 2) : text;
                if (!larger)
                        free(text);
                text = larger;
        }
        if (text)
                text[used] = '\0';
        return text;
}

int main(int argc, char **argv)
{
        const char *mode = argc > 1 ? argv[1] : "output";
        char *input = read_all(stdin), *output;
        /* Standard output is for the answer alone: what the candidate prints goes to standard error. */
        FILE *answer = fdopen(dup(STDOUT_FILENO), "w");

        if (!input || !answer || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return 1;
        output = solution(input);
        if (strcmp(mode, "input") == 0)
                fprintf(answer, "{\"input\":%s}\n", input);
        else if (strcmp(mode, "both") == 0)
                fprintf(answer, "{\"output\":%s,\"input\":%s}\n", output ? output : "null", input);
        else
                fprintf(answer, "{\"output\":%s}\n", output ? output : "null");
        return fclose(answer) != 0;
}
