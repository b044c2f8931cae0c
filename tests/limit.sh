#!/usr/bin/env bash
# Runs a test with a limit on the CPU time of each of its processes:
# limit.sh SECONDS COMMAND...
#
# The clock on the wall says how busy the machine is; CPU time says what the test does.
# What waits for ever uses none, and is ended by the long TIMEOUT of tests.cmake.
ulimit -S -t "$1"
shift
exec "$@"
