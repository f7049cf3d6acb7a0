#!/usr/bin/env bash
# Runs "go build -v ..." and says what it compiles and how long that has taken: on a terminal in one line, elsewhere in a line every
# 15 seconds. It says nothing about a build that takes no longer than three seconds.
# Usage: hack/progress.sh WHAT go build -v ...
set -euo pipefail
what=${1:?usage: hack/progress.sh WHAT COMMAND...}
shift
interval=15
[[ -t 2 ]] && interval=1

count=0 package='' said=0 start=$SECONDS
say() {
  local text
  printf -v text 'building %s: %d s, %d packages, %s' "$what" "$((SECONDS - start))" "$count" "${package:-nothing compiled yet}"
  if [[ -t 2 ]]; then
    printf '\r\e[K%.*s' "$(($(tput cols 2>/dev/null || echo 80) - 1))" "$text" >&2
  else
    printf '%s\n' "$text" >&2
  fi
  said=$SECONDS
}

exec {output}< <(exec "$@" 2>&1)
pid=$!
while :; do
  # Without the line's end, read has timed out: a status of more than 128.
  if read -r -t 1 -u "$output" line; then
    if [[ $line =~ ^[a-zA-Z0-9_.~/-]+$ ]]; then
      package=$line
      count=$((count + 1))
    else
      printf '%s\n' "$line" >&2 # what the compiler complains about
    fi
  elif (($? <= 128)); then
    break
  fi
  ((SECONDS - start < 3 || SECONDS - said < interval)) || say
done
status=0
wait "$pid" || status=$?
if ((said)); then
  package='done'
  ((status == 0)) || package='failed'
  say
  [[ ! -t 2 ]] || printf '\n' >&2
fi
exit "$status"
