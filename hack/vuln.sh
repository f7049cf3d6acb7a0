#!/usr/bin/env bash
# Looks for known vulnerabilities that the code of each module calls. Exit code 1: there are some, or a module could not be checked. Exit code 3: the database cannot be reached, so that nothing is known.
set -euo pipefail
cd "$(dirname "$0")/.."

govulncheck=${GOVULNCHECK:-go run golang.org/x/vuln/cmd/govulncheck@v1.9.0}
db=${GOVULNDB:-https://vuln.go.dev}

reachable() {
  case $db in
    file://*) [[ -e ${db#file://}/index/db.json ]] ;;
    *) curl --silent --fail --max-time 20 --output /dev/null "$db/index/db.json" ;;
  esac
}

if ! reachable; then
  printf 'vuln: the vulnerability database %s cannot be reached: nothing was checked; set GOVULNDB to a mirror\n' "$db" >&2
  exit 3
fi
found=0
for module in . sandbox hack/image hack/chart; do
  printf 'vuln: %s\n' "$module"
  # shellcheck disable=SC2086 # the command has arguments
  (cd "$module" && $govulncheck -db "$db" ./...) || found=1
done
exit "$found"
