# shellcheck shell=sh
# SPDX-License-Identifier: Apache-2.0
# Calls the function solution of candidate.sh; $1: output, input or both.

mode=$1
cat >/tmp/input
exec 3>&1 1>&2
# shellcheck source=/dev/null
. ./candidate.sh
output=$(solution </tmp/input 3>&-) || exit
case $mode in
output) printf '{"output":%s}\n' "$output" >&3 ;;
input) printf '{"input":%s}\n' "$(cat /tmp/input)" >&3 ;;
both) printf '{"output":%s,"input":%s}\n' "$output" "$(cat /tmp/input)" >&3 ;;
esac
