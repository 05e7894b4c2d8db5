# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034 # what looks unused here, other parts use
#
# One OS tree per release: Debian, bootstrapped with this machine's mirror.

tree_packages() { # SUITE
    printf '%s\n' "${BED_PACKAGES_SYSTEM[@]}" "${BED_PACKAGES_JOBS[@]}" "${BED_PACKAGES_BUILD[@]}"
    [[ $1 != trixie ]] || printf '%s\n' "${BED_PACKAGES_TRIXIE[@]}"
}

tree_key() { # SUITE
    {
        echo "$BED_TREE_VERSION $1 $(uname -m) $BED_KERNEL_PACKAGE"
        tree_packages "$1"
        grep -v '^# SPDX' "$BED_LIB/tree-hook"
    } | short_hash
}

tree_path() { # SUITE
    part_path "tree-$1" "$(tree_key "$1")"
}

need_tree() { # SUITE
    make_part "tree-$1" "$(tree_key "$1")" make_tree "$1"
}

make_tree() { # SUITE TARGET
    local suite=$1 target=$2 log=$BED_CACHE/log/tree-$1.log
    need_tree_programs
    need_space 4096
    step "bootstrapping Debian $suite (a minute or three)" retry bootstrap "$suite" "$target" \
        >"$log" 2>&1 || {
        tail_of "$log" "the bootstrap's last words:"
        die "could not bootstrap Debian $suite: is the mirror of this machine's apt reachable," \
            "and does it hold $suite? QSCOPE_BED_MIRROR=URL names another"
    }
    chmod 0755 "$target"
}

# In a mount namespace of its own, so that a killed bootstrap leaves no mount behind.
bootstrap() { # SUITE TARGET
    local suite=$1 target=$2 sources options include
    sources=$(mirror_lines "$suite")
    [[ -n $sources ]] || {
        echo "no Debian mirror found in this machine's apt configuration"
        return 1
    }
    # What an earlier try left.
    find "$target" -xdev -mindepth 1 -delete
    options=$(mktemp)
    echo 'Acquire::Retries "5";' >"$options"
    mirror_options >>"$options"
    include=$(tree_packages "$suite" | paste -sd,)
    BED_SUITE=$suite BED_KERNEL_PACKAGE=$BED_KERNEL_PACKAGE \
        setpriv --pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc -- \
        mmdebstrap --mode=root --variant=minbase --format=directory \
        --include="$include" --keyring="$BED_KEYRING" --aptopt="$options" \
        --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*/*' \
        --customize-hook="$BED_LIB/tree-hook" \
        "$suite" "$target" - <<<"$sources"
    local rc=$?
    rm -f "$options"
    return "$rc"
}
