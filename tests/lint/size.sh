#!/usr/bin/env bash
# Sizes: size.sh ROOT
#
# files      <= 800 lines
# functions  <= 80 lines, not counting lines that hold a whole "case X: ...;": a switch
#            over operations may be long as long as each case is one line
# lines      <= 90 columns; tables (.def), data and Markdown are free
# opening    every C source opens with a comment that says what it does
set -euo pipefail
cd "$1"
mapfile -t files < <(find CMakeLists.txt bootstrap .ci frontend ir passes codegen \
    runtime kernels_dsl tests docs -type f \( -name '*.[chly]' -o -name '*.def' \
    -o -name '*.sh' -o -name '*.tk' -o -name '*.cmake' -o -name CMakeLists.txt \
    -o -name bootstrap -o -path '.ci/*' \) 2>/dev/null | LC_ALL=C sort)
LC_ALL=C awk '
function report(line, rule) { printf "%s:%d: %s\n", FILENAME, line, rule; bad = 1 }
function close_file() {
    if (lines <= 800) return
    printf "%s:%d: %d lines, at most 800\n", last, lines, lines
    bad = 1
}
FNR == 1 {
    close_file()
    last = FILENAME
    source = FILENAME ~ /\.[chly]$/
    free = FILENAME ~ /\.def$/ || FILENAME ~ /^tests\/.*\.tk$/
    opened = start = 0
    if (FILENAME ~ /\.[ch]$/ && $0 !~ /^\/\*/)
        report(1, "a source file opens with a comment that says what it does")
}
{ lines = FNR }
!free && length($0) > 90 { report(FNR, length($0) " columns, at most 90") }
FILENAME ~ /\.[ch]$/ && /^\{$/ { start = FNR; cases = 0 }
start && /^[ ]+(case [^:]+|default):.*;( \/\*.*\*\/)?$/ { cases++ }
FILENAME ~ /\.[ch]$/ && /^\}$/ && start {
    if (FNR - start - 1 - cases > 80)
        report(start, "function of " FNR - start - 1 " lines, at most 80")
    start = 0
}
END {
    close_file()
    exit bad
}' "${files[@]}"
