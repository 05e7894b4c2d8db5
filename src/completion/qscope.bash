# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Completion of qscope(1) for bash. Verbs and options are those that --help names, so that there is no second list.

_qscope_verbs() {
        "${COMP_WORDS[0]}" --help 2>/dev/null | sed -nE 's/^  ([a-z]+)  +[a-z].*/\1/p'
}

_qscope_options() { # VERB
        "${COMP_WORDS[0]}" "$1" --help 2>/dev/null |
                sed -nE 's/^  (-[A-Za-z], )?(--?[A-Za-z][a-z-]*)([ =][A-Z=|-]+)?(  .*)?$/\1\2/p' | tr -d ' ' | tr , '\n'
}

# The options of a verb that want a value.
_qscope_wants_value() { # VERB OPTION
        "${COMP_WORDS[0]}" "$1" --help 2>/dev/null | grep -qE -- "^  (-[A-Za-z], )?$2 [A-Z]"
}

_qscope_policies() {
        "${COMP_WORDS[0]}" policy list 2>/dev/null | sed -nE 's/^([A-Za-z0-9][A-Za-z0-9_-]*).*/\1/p'
}

_qscope_harnesses() {
        local path
        for path in /etc/qscope/harness/*.json /usr/local/share/qscope/harness/*.json /usr/share/qscope/harness/*.json; do
                path=${path##*/} path=${path%.json}
                [[ $path == *\** ]] || printf '%s\n' "$path"
        done | sort -u
}

# Receipts are named after their job, a later one of the same with a number. There may be thousands.
_qscope_jobs() {
        local directory=/var/lib/qscope/receipts name
        ((EUID == 0)) || directory=${XDG_STATE_HOME:-$HOME/.local/state}/qscope/receipts
        for name in "$directory/$_qscope_word"*.json; do
                name=${name##*/} name=${name%.json}
                [[ ! $name =~ ^(.+)\.[0-9]+$ ]] || name=${BASH_REMATCH[1]}
                [[ $name == *\** ]] || printf '%s\n' "$name"
        done | sort -u
}

_qscope_words() { # WORDS
        mapfile -t COMPREPLY < <(compgen -W "$1" -- "$_qscope_word")
}

_qscope_files() { # compgen's action
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen "$1" -- "$_qscope_word")
}

_qscope_value() { # OPTION
        case $1 in
        --policy) _qscope_words "$(_qscope_policies)" ;;
        --discard) _qscope_words "$(_qscope_jobs)" ;;
        --harness)
                _qscope_files -f
                mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -W "$(_qscope_harnesses)" -- "$_qscope_word")
                ;;
        --workspace) _qscope_words "overlay fresh" ;;
        --network) _qscope_words "none host" ;;
        --posture) _qscope_words "isolated bounded" ;;
        --verdict) _qscope_words "pass fail rejected error aborted" ;;
        --cwd | --state-dir | --receipts) _qscope_files -d ;;
        --pass-env) _qscope_words "$(compgen -v)" ;;
        *) _qscope_files -f ;;
        esac
}

_qscope_argument() { # VERB INDEX
        case $1 in
        log) _qscope_words "$(_qscope_jobs)" ;;
        policy)
                if (($2 == 2)); then
                        _qscope_words "list show lint"
                elif [[ ${COMP_WORDS[2]} == show ]]; then
                        _qscope_words "$(_qscope_policies)"
                else
                        _qscope_files -f
                fi
                ;;
        doctor | clean) ;;
        *) _qscope_files -f ;;
        esac
}

_qscope() {
        local _qscope_word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]} i
        COMPREPLY=()
        if ((COMP_CWORD == 1)); then
                _qscope_words "$(_qscope_verbs) --help --version"
                return
        fi
        # What comes after "--" is the job's own command.
        for ((i = 2; i < COMP_CWORD; i++)); do
                if [[ ${COMP_WORDS[i]} == -- ]]; then
                        if ((i + 1 == COMP_CWORD)); then _qscope_files -c; else _qscope_files -f; fi
                        return
                fi
        done
        # bash takes --option=value for three words.
        if [[ $_qscope_word == = ]]; then
                _qscope_word=''
        elif [[ $before == = ]]; then
                before=${COMP_WORDS[COMP_CWORD - 2]}
        fi
        if [[ $before == -* ]] && _qscope_wants_value "$verb" "$before"; then
                _qscope_value "$before"
        elif [[ $_qscope_word == -* ]]; then
                _qscope_words "$(_qscope_options "$verb")"
        else
                _qscope_argument "$verb" "$COMP_CWORD"
        fi
}

complete -F _qscope qscope
