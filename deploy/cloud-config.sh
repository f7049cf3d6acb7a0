#!/usr/bin/env bash
# Makes or updates the ConfigMap kube-system/cloud-config, the configuration of cloud-controller-manager.
set -euo pipefail
set +x # tracing would print the secret

usage() {
  cat <<'TEXT'
Usage: ACCESS_KEY_ID=... ACCESS_KEY_SECRET=... REGION=... cloud-config.sh [--dry-run]

Makes or updates the ConfigMap kube-system/cloud-config with kubectl (which reads KUBECONFIG).

Required in the environment:
  ACCESS_KEY_ID       id of an access key
  ACCESS_KEY_SECRET   its secret
  REGION              region id, for example cn-hangzhou

Optional; what is not set is found out by cloud-controller-manager:
  VPC_ID              VPC of the cluster
  VSWITCH_ID          vSwitches of intranet load balancers: zone:vsw-...[,zone:vsw-...]
  ZONE_ID             zone of the cluster
  CLUSTER_ID          name of the cluster in tags and names of cloud resources
  ROUTE_TABLE_IDS     route tables to write, separated by commas
  RESOURCE_GROUP_ID   resource group of new cloud resources

  --dry-run           print the manifest, with the secret masked, and change nothing
TEXT
}

die() {
  printf 'cloud-config.sh: %s\n' "$1" >&2
  exit 1
}

# json_string prints its argument as a JSON string. It goes through the characters one by one, because what ${x//a/b} does
# with backslashes and ampersands differs between versions of bash.
json_string() {
  local text=$1 out='' char i
  for ((i = 0; i < ${#text}; i++)); do
    char=${text:i:1}
    case $char in
      '"' | \\) out+="\\$char" ;;
      $'\n') out+='\n' ;;
      *) out+=$char ;;
    esac
  done
  printf '"%s"' "$out"
}

# base64_of prints its argument in base64 on one line. printf is a builtin: the argument is in no process list.
base64_of() { printf '%s' "$1" | base64 | tr -d '\n'; }

# require VARIABLE dies if it is empty or holds what no key and no id has, most often a line break from a pasted value.
require() {
  local value=${!1:-}
  [[ -n $value ]] || die "$1 is not set: $2"
  [[ $value != *[![:graph:]]* ]] || die "$1 holds a space, a line break or another character that does not belong there"
}

field() { printf ',\n    "%s": %s' "$1" "$(json_string "$2")"; }

# optional VARIABLE FIELD prints the field if the variable is set.
optional() {
  local value=${!1:-}
  [[ -z $value ]] || field "$2" "$value"
}

# check_input dies on what is missing or unusable. It runs before anything is printed: a die inside $(...) ends only that.
check_input() {
  local name
  require ACCESS_KEY_ID 'it is the id of the access key'
  require ACCESS_KEY_SECRET 'it is the secret of the access key'
  require REGION 'it is a region id, for example cn-hangzhou'
  [[ $REGION =~ ^[a-z]+(-[a-z0-9]+)+$ ]] || die "REGION is \"$REGION\", not a region id such as cn-hangzhou"
  for name in VPC_ID VSWITCH_ID ZONE_ID CLUSTER_ID ROUTE_TABLE_IDS RESOURCE_GROUP_ID; do
    [[ -z ${!name:-} ]] || require "$name" ''
  done
}

# cloud_config SECRET prints the configuration in the format that --cloud-config reads, with SECRET in its place.
cloud_config() {
  printf '{\n  "Global": {\n    "region": %s' "$(json_string "$REGION")"
  field accessKeyID "$(base64_of "$ACCESS_KEY_ID")"
  field accessKeySecret "$1"
  optional VPC_ID vpcid
  optional VSWITCH_ID vswitchid
  optional ZONE_ID zoneid
  optional CLUSTER_ID clusterID
  optional ROUTE_TABLE_IDS routeTableIDs
  optional RESOURCE_GROUP_ID resourceGroupID
  printf '\n  }\n}\n'
}

manifest() {
  local config
  config=$(cloud_config "$1")
  printf '{\n  "apiVersion": "v1",\n  "kind": "ConfigMap",\n'
  printf '  "metadata": {"name": "cloud-config", "namespace": "kube-system"},\n'
  printf '  "data": {"cloud-config.conf": %s}\n}\n' "$(json_string "$config")"
}

main() {
  local dry_run=false secret document
  case ${1:-} in
    '') ;;
    --dry-run) dry_run=true ;;
    -h | --help) usage && return ;;
    *) die "unknown argument \"$1\": only --dry-run and --help are accepted" ;;
  esac
  [[ $# -le 1 ]] || die "unexpected argument \"$2\": only one is accepted"

  check_input
  if $dry_run; then
    manifest '***'
    return
  fi
  command -v kubectl >/dev/null || die 'kubectl is not on the PATH: https://kubernetes.io/docs/tasks/tools/'
  secret=$(base64_of "$ACCESS_KEY_SECRET")
  document=$(manifest "$secret")
  unset ACCESS_KEY_SECRET # kubectl and its plugins have no use for it
  # Server-side, because a client-side apply keeps a second copy of the secret in an annotation.
  printf '%s' "$document" | kubectl apply --server-side --force-conflicts --field-manager=cloud-config.sh -f - ||
    die 'kubectl could not apply the ConfigMap kube-system/cloud-config: its own message is above'
}

main "$@"
