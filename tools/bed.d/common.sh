# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# Messages, exit statuses, locks and the cache's life cycle.
# Knows nothing about systemd, trees or beds of either kind.

readonly BED_EXIT_INFRA=125
readonly BED_EXIT_TIMEOUT=124

BED_QUIET=${BED_QUIET:-0}
BED_VERBOSE=${BED_VERBOSE:-0}
BED_CACHE=${QSCOPE_CACHE_DIR:-/var/cache/qscope-beds}

# Messages go to stderr: stdout belongs to the command that runs in the bed. They have a
# descriptor of their own, so that a step can send its output to a log.
exec 9>&2

note() {
    [[ $BED_QUIET == 1 ]] || printf 'bed: %s\n' "$*" >&9
}

warn() {
    printf 'bed: %s\n' "$*" >&9
}

die() {
    warn "$*"
    exit "$BED_EXIT_INFRA"
}

# Says what a long step was and, when it took more than a moment, how long.
step() { # SENTENCE COMMAND...
    local what=$1 begin=$SECONDS rc=0
    shift
    note "$what..."
    "$@" || rc=$?
    if ((rc == 0 && SECONDS - begin > 2)); then
        note "$what: done in $((SECONDS - begin)) s"
    fi
    return "$rc"
}

# For what comes over the network: one failed download is no reason to give up.
retry() { # COMMAND...
    local pause
    for pause in 5 20; do
        "$@" && return
        warn "that failed; once more in $pause s"
        sleep "$pause"
    done
    "$@"
}

tail_of() { # FILE HEADING
    [[ -s $1 ]] || return 0
    warn "$2"
    # Consoles and logs may carry escape sequences; a terminal must not obey them.
    tail -n 50 "$1" | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' | tr -d '\000-\010\013-\037\177' |
        sed 's/^/  | /' >&9
}

short_hash() {
    sha256sum | cut -c1-16
}

need_root() {
    ((EUID == 0)) || die "a bed boots a whole system and needs root: run it with sudo"
}

need_space() { # MIB
    local free
    free=$(df --output=avail -BM "$BED_CACHE" | tail -n 1 | tr -dc 0-9)
    ((free >= $1)) || die "$BED_CACHE has $free MiB free, $1 MiB are needed: make room," \
        "or point QSCOPE_CACHE_DIR at a larger filesystem"
}

cache_init() {
    mkdir -p "$BED_CACHE"/{locks,parts,run,log,meson} ||
        die "cannot make the cache directory $BED_CACHE: set QSCOPE_CACHE_DIR"
    chmod 0700 "$BED_CACHE"
}

# A lock is held as long as its descriptor is open somewhere, so also by the children of
# a killed bed, until they are gone too.
lock() { # NAME FDVAR MODE(-x|-s) [-n]
    local -n fd_ref=$2
    local file=$BED_CACHE/locks/$1
    exec {fd_ref}>>"$file"
    if flock -n "$3" "$fd_ref"; then
        return 0
    fi
    if [[ ${4:-} == -n ]]; then
        exec {fd_ref}>&-
        return 1
    fi
    note "waiting for another bed command ($1)"
    flock "$3" "$fd_ref"
}

unlock() { # FDVAR
    local -n unlock_ref=$1
    exec {unlock_ref}>&-
}

part_path() { # PART KEY
    echo "$BED_CACHE/parts/$1@$2"
}

# Makes the directory PART@KEY by calling MAKER with the name of a temporary directory,
# unless it is there; then drops the part's older entries that nobody uses, but for the
# last used: two branches side by side would else make each other's trees anew. The caller
# keeps using the part under a shared lock, which is left open on purpose.
make_part() { # PART KEY MAKER ARG...
    local part=$1 key=$2 path work build_fd use_fd
    shift 2
    path=$(part_path "$part" "$key")
    lock "part-$part" build_fd -x
    if [[ ! -d $path ]]; then
        work=$BED_CACHE/parts/.new-$part
        rm -rf --one-file-system "$work"
        mkdir "$work"
        "$@" "$work" || {
            rm -rf --one-file-system "$work"
            return 1
        }
        mv -T "$work" "$path"
        drop_old_entries "$part" "$path"
    fi
    lock "use-$part@$key" use_fd -s
    touch "$path"
    unlock build_fd
}

# An entry's time is that of its last use. These want the part's lock held.
drop_old_entries() { # PART NEWEST
    local entry kept=0
    while read -r entry; do
        [[ $entry != "$2" ]] || continue
        ((kept++ < 1)) || drop_part_entry "${entry##*/}" || true
    done < <(ls -dt "$BED_CACHE/parts/$1@"*)
}

drop_part_entry() { # PART@KEY
    local drop_fd
    lock "use-$1" drop_fd -x -n || return
    rm -rf --one-file-system "$BED_CACHE/parts/$1"
    rm -f "$BED_CACHE/locks/use-$1"
    unlock drop_fd
}
