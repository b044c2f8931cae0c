#!/usr/bin/env bash
# What the built library calls, keeps and exports: symbols.sh ROOT BUILD
#
# calls    the library never exits, aborts, prints or installs signal handlers
# globals  no writable data: all state belongs to a session
# exports  libsdc.so shows sdc_... and sdcrt_... and nothing of LLVM
# glibc    what is built with the C library that packages are made with (2.36) loads with
#          2.34 and later: RHEL 9, Ubuntu 22.04, Debian 12
#
# Read from the object files, so no macro or wrapper hides a call.
set -euo pipefail
cd "$1"
build=$2
[ -e "$build/libsdc.so" ] || exit 0
bad=0

# place FILE.c.o NAME: the line of the source that names the symbol
place() {
    local file
    file=$(find frontend ir passes codegen runtime -name "${1%.o}" \
        -not -path 'runtime/cli/*' | xargs -r grep -lw -- "$2" | head -n 1) || true
    [ -n "$file" ] || { printf '%s:1' "${1%.o}"; return; }
    printf '%s:%s' "$file" "$(grep -nwm1 -- "$2" "$file" | cut -d: -f1)"
}

# flex mentions its default streams; the scanner reads from memory and has no default
# rule.
calls='exit|_exit|_Exit|quick_exit|abort|__assert_fail|printf|vprintf|puts|putchar|perror'
calls+='|signal|sigaction|stdout|stderr'
while read -r member symbol; do
    case $member:$symbol in lex.c.o:stdout) continue ;; esac
    printf '%s: the library never exits, aborts or prints: %s\n' \
        "$(place "$member" "$symbol")" "$symbol"
    bad=1
done < <(nm -A -u "$build"/libsdc_*.a "$build"/libsdcrt.a 2>/dev/null |
    grep -vE '/libsdc_(ref|support)\.a:' |
    sed -En "s/^[^:]*:([^:]*): +U (__)?($calls|(v?printf)_chk)\$/\1 \3/p" | sort -u)

# -fdata-sections names the section after the variable; constants with relocations are in
# .data.rel.ro.  pthread_once flags must be global, since LLVM's own tables are
# process-wide, and what stands in for malloc (llvm_memory.c) knows no session; debuggers
# look for a global (jit_debug.c), and contexts may share the arrays of a launch that runs
# without locked instructions (alone.c).
if [ "$(nm "$build"/libsdc_base.a | grep -c __asan)" -eq 0 ]; then
    while read -r member symbol; do
        case $member in llvm_memory.c.o | jit_debug.c.o | alone.c.o) continue ;; esac
        case $symbol in once | once.* | *_once | *_once.[0-9]*) continue ;; esac
        printf '%s: writable global: %s\n' "$(place "$member" "${symbol%%.*}")" "$symbol"
        bad=1
    done < <(for lib in "$build"/libsdc_*.a "$build"/libsdcrt.a; do
        case $lib in *_ref.a | *_support.a) continue ;; esac
        [ -f "$lib" ] || continue
        objdump -t "$lib" | awk '
            /:     file format/ { sub(/:.*/, ""); member = $0 }
            / O \.(bss|data|tbss|tdata)/ && !/\.data\.rel\.ro/ { print member, $NF }'
    done | sort -u)
fi

while read -r symbol; do
    printf 'libsdc.so:1: exported but not public: %s\n' "$symbol"
    bad=1
done < <(nm -D --defined-only "$build/libsdc.so" | awk '{ print $NF }' |
    grep -vE "^((sdc|sdcrt|__jit_debug)_|__asan|__odr_asan|__ubsan|_(init|fini)\$)" ||
    true)

# Sanitizers ask for more, and newer C libraries give old calls new names.
newest=$(getconf GNU_LIBC_VERSION 2>/dev/null | grep -oE '[0-9.]+$') || newest=0
if [ "$(nm "$build"/libsdc_base.a | grep -cE '__[at]san')" -eq 0 ] &&
    [ "$(printf '%s\n' "$newest" 2.36 | sort -V | tail -n 1)" = 2.36 ]; then
    for file in libsdc.so sdc; do
        while read -r version symbol; do
            [ "$(printf '%s\n' $version 2.34 | sort -V | tail -n 1)" != 2.34 ] || continue
            echo "$file:1: $symbol is glibc $version, at most 2.34: see codegen/llvm.c"
            bad=1
        done < <(objdump -T "$build/$file" |
            sed -nE 's/.*\*UND\*.*GLIBC_([0-9.]+)\)? +([^ ]+)$/\1 \2/p' | sort -u)
    done
fi
exit $bad
