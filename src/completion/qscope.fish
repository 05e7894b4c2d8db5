# SPDX-License-Identifier: Apache-2.0
# Completion of qscope(1) for fish. Verbs and options are those that --help names, so that there is no second list.

function __qscope_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and echo $words[2]
end

function __qscope_verbs
    qscope --help 2>/dev/null | string replace -rf '^  ([a-z]+)  +([a-z].*)$' '$1\t$2'
    printf '%s\n' --help --version
end

function __qscope_options
    qscope (__qscope_verb) --help 2>/dev/null |
        string replace -rf '^  (?:-[A-Za-z], )?(--?[A-Za-z][a-z-]*)(?: [A-Z=|-]+)?(?:  +(.*))?$' '$1\t$2'
end

function __qscope_policies
    qscope policy list 2>/dev/null | string replace -rf '^([A-Za-z0-9][A-Za-z0-9_-]*).*' '$1'
end

function __qscope_harnesses
    path basename /etc/qscope/harness/*.json /usr/{local/,}share/qscope/harness/*.json 2>/dev/null |
        string replace -r '\.json$' ''
end

# Receipts are named after their job, a later one of the same with a number.
function __qscope_jobs
    set -l directory /var/lib/qscope/receipts
    set -l home $XDG_STATE_HOME
    test -n "$home"; or set home $HOME/.local/state
    test (id -u) -eq 0; or set directory $home/qscope/receipts
    path basename $directory/*.json 2>/dev/null | string replace -r '(\.[0-9]+)?\.json$' ''
end

function __qscope_after
    set -l words (commandline -opc)
    contains -- $words[-1] $argv
end

function __qscope_is
    contains -- (__qscope_verb) $argv
end

complete -c qscope -n 'test -z (__qscope_verb)' -f -a '(__qscope_verbs)'
complete -c qscope -n 'string match -q -- "-*" (commandline -ct); and test -n (__qscope_verb)' -f -a '(__qscope_options)'
complete -c qscope -n '__qscope_after --policy' -x -a '(__qscope_policies)'
complete -c qscope -n '__qscope_after --harness' -F -a '(__qscope_harnesses)'
complete -c qscope -n '__qscope_after --discard' -x -a '(__qscope_jobs)'
complete -c qscope -n '__qscope_after --workspace' -x -a 'overlay fresh'
complete -c qscope -n '__qscope_after --network' -x -a 'none host'
complete -c qscope -n '__qscope_after --posture' -x -a 'isolated bounded'
complete -c qscope -n '__qscope_after --verdict' -x -a 'pass fail rejected error aborted'
complete -c qscope -n '__qscope_after --cwd --state-dir --receipts' -x -a '(__fish_complete_directories)'
complete -c qscope -n '__qscope_after policy' -x -a 'list show lint'
complete -c qscope -n '__qscope_is policy; and __qscope_after show' -x -a '(__qscope_policies)'
complete -c qscope -n '__qscope_is log; and not string match -q -- "-*" (commandline -ct)' -x -a '(__qscope_jobs)'
complete -c qscope -n '__qscope_is doctor clean' -f
