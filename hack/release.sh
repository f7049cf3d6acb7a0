#!/usr/bin/env bash
# Makes the files of a release in dist/: images, programs, chart, manifests, release notes, checksums, and an unsigned provenance statement.
# It needs no network but the Go module proxy, and publishes nothing. The same commit gives the same bytes.
# Usage: hack/release.sh vX.Y.Z
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
  printf 'release: %s\n' "$1" >&2
  exit 1
}

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || die "VERSION is \"$version\": set it to a version such as v0.1.0"
number=${version#v}
chart=charts/cloud-controller-manager
grep -q "^appVersion: $number\$" "$chart/Chart.yaml" || die "$chart/Chart.yaml has another appVersion than $number"
grep -q "^version: $number\$" "$chart/Chart.yaml" || die "$chart/Chart.yaml has another version than $number"
notes=$(awk -v heading="## [$number]" 'index($0, heading) == 1 { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md)
[[ -n ${notes//[$' \n']/} ]] || die "CHANGELOG.md has no section [$number]: rename the section Unreleased"
[[ -z $(git status --porcelain) ]] || die 'the checkout has changes: commit them'
commit=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git show --no-patch --format=%ct HEAD)

rm -rf dist
mkdir dist
printf '%s\n' "$notes" >dist/NOTES.md
(cd hack/image && go run . --root "$OLDPWD" --version "$version" --out "$OLDPWD/dist")
flags="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitCommit=$commit"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  for program in cloud-controller-manager provider-initor alicloud-emulator; do
    CGO_ENABLED=0 GOOS=${platform%/*} GOARCH=${platform#*/} \
      go build -buildvcs=false -trimpath -ldflags "$flags" -o "dist/$program-${platform%/*}-${platform#*/}" "./cmd/$program"
  done
done
(cd hack/image && go run . --licenses "$OLDPWD/dist/LICENSES.txt" "$OLDPWD"/dist/*-linux-* "$OLDPWD"/dist/*-darwin-*)
helm=${HELM:-$(cd hack/chart && CGO_ENABLED=0 go tool -n helm.sh/helm/v4/cmd/helm)}
"$helm" package "$chart" --destination dist >/dev/null
cp deploy/*.yaml deploy/cloud-config.sh dist/

cd dist
files=(*)
sha256sum "${files[@]}" >SHA256SUMS

# https://slsa.dev/spec/v1.0/provenance. The workflow makes the signed one.
{
  printf '{"_type": "https://in-toto.io/Statement/v1", "subject": ['
  separator=''
  while read -r sum file; do
    printf '%s{"name": "%s", "digest": {"sha256": "%s"}}' "$separator" "$file" "$sum"
    separator=', '
  done <SHA256SUMS
  printf '], "predicateType": "https://slsa.dev/provenance/v1", "predicate": {"buildDefinition": {'
  printf '"buildType": "https://github.com/alicloud-ccm/cloud-provider-alicloud/blob/main/docs/contributing/release.md", '
  printf '"externalParameters": {"version": "%s"}, "internalParameters": {"go": "%s"}, ' "$version" "$(go env GOVERSION)"
  printf '"resolvedDependencies": [{"uri": "git+https://github.com/alicloud-ccm/cloud-provider-alicloud@refs/tags/%s", "digest": {"gitCommit": "%s"}}]}, ' "$version" "$commit"
  printf '"runDetails": {"builder": {"id": "https://github.com/alicloud-ccm/cloud-provider-alicloud/blob/main/hack/release.sh"}}}}\n'
} >provenance.intoto.json
printf 'release: %s files in dist/, not signed and not published\n' "$(find . -type f | wc -l)"
