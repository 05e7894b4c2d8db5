# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# The project's current build, compiled in the OS tree against that release's libraries.
# Ninja's directory is kept per source directory, so that a small change builds in a second.

# The files git would take, with their modes: what is built, to the byte.
list_sources() {
    if git -c safe.directory='*' -C "$BED_SOURCE" rev-parse --git-dir >/dev/null 2>&1; then
        git -c safe.directory='*' -C "$BED_SOURCE" ls-files -coz --exclude-standard
    else
        (cd "$BED_SOURCE" && find . -type f -not -path './build*' -print0)
    fi | sort -zu | while IFS= read -rd '' file; do
        # Removed, but not yet in git's eyes.
        [[ ! -e $BED_SOURCE/$file ]] || printf '%s\0' "$file"
    done
}

project_key() { # SUITE
    {
        tree_key "$1"
        cat "$BED_LIB/project-inner"
        list_sources | tar -cf - -C "$BED_SOURCE" --null --no-recursion -T - \
            --mtime=@0 --owner=0 --group=0 --sort=none
    } | short_hash
}

# One per source directory: two work trees side by side do not drop each other's builds.
project_part() { # SUITE
    echo "build-$1-$(short_hash <<<"$BED_SOURCE")"
}

need_project() { # SUITE
    drop_orphans
    BED_PROJECT=$(part_path "$(project_part "$1")" "$(project_key "$1")")
    make_part "$(project_part "$1")" "$(project_key "$1")" make_project "$1"
}

# An empty layer in its place.
need_no_project() {
    BED_PROJECT=$BED_CACHE/no-project
    mkdir -p "$BED_PROJECT"
}

# Builds of source directories that are gone, as a CI's clones are.
drop_orphans() {
    local dir part entry part_fd
    for dir in "$BED_CACHE"/meson/*; do
        [[ -f $dir/source && ! -d $(<"$dir/source") ]] || continue
        part=${dir##*/}
        lock "part-$part" part_fd -x -n || continue
        rm -rf --one-file-system "$dir"
        for entry in "$BED_CACHE/parts/$part@"*; do
            [[ ! -d $entry ]] || drop_part_entry "${entry##*/}" || true
        done
        unlock part_fd
    done
}

make_project() { # SUITE TARGET
    local suite=$1 target=$2 log=$BED_CACHE/log/build-$1.log
    chmod 0755 "$target"
    if [[ ! -f $BED_SOURCE/meson.build ]]; then
        note "there is no meson.build yet: the bed starts without the project"
        return 0
    fi
    step "building the project on Debian $suite" compile "$suite" "$target" >"$log" 2>&1 || {
        tail_of "$log" "the build's last words:"
        die "the project does not build on Debian $suite"
    }
}

compile() { # SUITE TARGET
    local work
    work=$BED_CACHE/meson/$(project_part "$1")
    mkdir -p "$work"
    # A new tree may have other compilers and libraries.
    if [[ $(cat "$work/tree" 2>/dev/null) != "$(tree_path "$1")" ]]; then
        rm -rf "$work"
        mkdir -p "$work"
        tree_path "$1" >"$work/tree"
    fi
    echo "$BED_SOURCE" >"$work/source"
    BED_TREE=$(tree_path "$1") BED_SOURCE=$BED_SOURCE BED_WORK=$work BED_TARGET=$2 \
        setpriv --pdeathsig KILL unshare --mount --pid --net --ipc --fork --kill-child \
        --propagation private -- /bin/bash "$BED_LIB/project-inner"
}
