# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the candidate in the scratch directory and becomes it: harness-c.sh program|function ARGUMENT...

kind=$1
shift
case $kind in
program) cc -O1 -w -o /tmp/candidate candidate.c -lm || exit 1 ;;
function) cc -O1 -w -o /tmp/candidate harness.c candidate.c -lm || exit 1 ;;
esac
exec /tmp/candidate "$@"
