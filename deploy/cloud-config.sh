#!/usr/bin/env bash
# Makes or updates the ConfigMap (or Secret) kube-system/cloud-config, the configuration of cloud-controller-manager.
set -euo pipefail
set +x # tracing would print the secret

usage() {
  cat <<'TEXT'
Usage: cloud-config.sh [--region REGION] [--secret] [--dry-run]

Makes or updates the ConfigMap kube-system/cloud-config with kubectl (which reads KUBECONFIG).

  --region REGION     region id, for example cn-hangzhou; else the variable REGION
  --secret            make the Secret kube-system/cloud-config instead of the ConfigMap (chart: cloudConfig.secretName)
  --dry-run           print the manifest, with the access key's secret masked, and change nothing

Required in the environment; on a terminal, what is missing is asked for:
  ACCESS_KEY_ID       id of an access key
  ACCESS_KEY_SECRET   its secret

Optional in the environment; what is not set is found out by cloud-controller-manager:
  VPC_ID              VPC of the cluster
  VSWITCH_ID          vSwitches of intranet load balancers: zone:vsw-...[,zone:vsw-...]
  ZONE_ID             zone of the cluster
  CLUSTER_ID          name of the cluster in tags and names of cloud resources
  ROUTE_TABLE_IDS     route tables to write, separated by commas
  RESOURCE_GROUP_ID   resource group of new cloud resources
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

# ask VARIABLE reads it from the terminal without showing it, where there is a terminal and the variable is empty.
ask() {
  local value
  [[ -z ${!1:-} && -t 0 ]] || return 0
  read -rsp "$1: " value || die "$1 is not set: nothing was typed"
  printf '\n' >&2
  printf -v "$1" %s "$value"
}

# check_input dies on what is missing or unusable. It runs before anything is printed: a die inside $(...) ends only that.
check_input() {
  local name
  ask ACCESS_KEY_ID
  ask ACCESS_KEY_SECRET
  require ACCESS_KEY_ID 'it is the id of the access key'
  require ACCESS_KEY_SECRET 'it is the secret of the access key'
  require REGION 'it is a region id, for example cn-hangzhou; --region sets it too'
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

# manifest KIND SECRET prints the object.
manifest() {
  local config
  config=$(cloud_config "$2")
  # The data of a Secret is base64; masked, it is for reading.
  [[ $1 == ConfigMap || $2 == "$mask" ]] || config=$(base64_of "$config")
  printf '{\n  "apiVersion": "v1",\n  "kind": "%s",\n' "$1"
  printf '  "metadata": {"name": "cloud-config", "namespace": "kube-system"},\n'
  printf '  "data": {"cloud-config.conf": %s}\n}\n' "$(json_string "$config")"
}

readonly mask='***'

main() {
  local dry_run=false kind=ConfigMap secret document
  while (($#)); do
    case $1 in
      --region)
        [[ $# -ge 2 ]] || die '--region has no value: it is a region id, for example cn-hangzhou'
        REGION=$2
        shift
        ;;
      --region=*) REGION=${1#*=} ;;
      --secret) kind=Secret ;;
      --dry-run) dry_run=true ;;
      -h | --help) usage && return ;;
      *) die "unknown argument \"$1\": accepted are --region REGION, --secret, --dry-run and --help" ;;
    esac
    shift
  done

  check_input
  if $dry_run; then
    manifest "$kind" "$mask"
    return
  fi
  command -v kubectl >/dev/null || die 'kubectl is not on the PATH: https://kubernetes.io/docs/tasks/tools/'
  secret=$(base64_of "$ACCESS_KEY_SECRET")
  document=$(manifest "$kind" "$secret")
  unset ACCESS_KEY_SECRET # kubectl and its plugins have no use for it
  # Server-side, because a client-side apply keeps a second copy of the secret in an annotation.
  printf '%s' "$document" | kubectl apply --server-side --force-conflicts --field-manager=cloud-config.sh -f - ||
    die "kubectl could not apply the $kind kube-system/cloud-config: its own message is above"
}

main "$@"
