#!/usr/bin/env bash
# Scans the images in dist/ with trivy or grype. Exit code 3: there is no scanner, or its database cannot be reached, so that nothing is known.
set -euo pipefail
cd "$(dirname "$0")/.."

scan() {
  if command -v trivy >/dev/null; then
    trivy image --quiet --exit-code 1 --severity HIGH,CRITICAL --input "$1"
  else
    grype --quiet --fail-on high "oci-archive:$1"
  fi
}

unknown() {
  printf 'image-scan: %s: nothing was checked\n' "$1" >&2
  exit 3
}

if command -v trivy >/dev/null; then
  trivy image --quiet --download-db-only || unknown "the database of trivy cannot be reached"
elif command -v grype >/dev/null; then
  grype db update --quiet || unknown "the database of grype cannot be reached"
else
  unknown "neither trivy nor grype is installed (https://trivy.dev, https://github.com/anchore/grype)"
fi
for archive in cloud-controller-manager.tar provider-initor.tar alicloud-emulator.tar; do
  [[ -e dist/$archive ]] || unknown "dist/$archive does not exist: run make image"
  scan "dist/$archive"
done
