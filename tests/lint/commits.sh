#!/usr/bin/env bash
# Subjects of commits: commits.sh ROOT
#
# "area: what changes", at most 72 characters, so that the history can be searched and
# bisected (docs/contributing.md). Looked at are commits since this file came.
set -euo pipefail
cd "$1"
git rev-parse --git-dir >/dev/null 2>&1 || exit 0
first=$(git log --diff-filter=A --format=%H -- tests/lint/commits.sh | tail -n 1)
[ -n "$first" ] || exit 0
git log --no-merges --format='%h %s' "$first^.." 2>/dev/null |
    LC_ALL=C.UTF-8 awk '
    {
        subject = substr($0, index($0, " ") + 1)
        if (length(subject) > 72)
            rule = "a subject of " length(subject) " characters, at most 72"
        else if (subject !~ /^[A-Za-z0-9_.\/+*, -]+: [^ ]+ .*[^ .]$/)
            rule = "a subject is \"area: what changes\", without a full stop"
        else
            next
        print $1 ": " rule ": " subject
        bad = 1
    }
    END { exit bad }'
