#!/usr/bin/env bash
# Runs the tests that call testkit.Long, without the race detector, under which they are skipped.
# Usage: hack/long-tests.sh [FLAG OF go test]...
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(grep -rl --include='*_test.go' 'testkit\.Long(t)' pkg internal)
mapfile -t packages < <(dirname "${files[@]}" | sort -u)
names=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testkit\.Long\(t\)/ { print name }' "${files[@]}" | sort -u | paste -sd'|')
exec "${GO:-go}" test "$@" -run "^($names)\$" "${packages[@]/#/./}"
