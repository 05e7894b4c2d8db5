# Makes a C file of the suite's JSON: each line a literal.
1i\
/* Made from selftest.json. */\
#include "core/selftest.h"\
\
const char selftest_suite_text[] =
s/\\/\\\\/g
s/"/\\"/g
s/^/"/
s/$/\\n"/
$a\
;
