#!/usr/bin/env bash
# record.sh records the metrics of a real manager in a sandbox, which it leads through the troubles that the dashboard shows, for about four minutes. The
# tests of this module evaluate alerts and panels on testdata/recorded.txt, which it writes. Needs bin/ (make build), kubectl and curl.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=$(realpath "${BIN:-bin}") out=hack/monitoring/testdata/recorded.txt dir=$(mktemp -d) port=${PORT:-18431} interval=15
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT

# An instance with a RAM role gives the manager temporary keys.
cat docs/tutorials/cloud.yaml - >"$dir/cloud.yaml" <<'YAML'
roles:
- {name: emulator-role}
instances:
- {id: i-role, vSwitchId: vsw-a, privateIp: 10.1.200.1, ramRole: emulator-role}
YAML
"$bin/sandbox" up --dir "$dir/cluster" --nodes 3 --node-ip --rate-limits published --settle 1s --emulator-config "$dir/cloud.yaml" >"$dir/up.log" 2>&1 &
until grep -q '^ready' "$dir/up.log"; do sleep 1; done
export KUBECONFIG=$dir/cluster/kubeconfig
cloud=$(cat "$dir/cluster/emulator")
grep -v accessKey "$dir/cluster/cloud-config.conf" >"$dir/cloud-config.conf"
# The name of the file becomes a label, which is to be the same each time.
ALICLOUD_CLIENT_SCHEME=HTTP METADATA_ENDPOINT=$cloud/metadata/i-role \
  env --chdir "$dir" "$bin/cloud-controller-manager" --cloud-config cloud-config.conf --kubeconfig "$KUBECONFIG" \
  --cluster-cidr 10.244.0.0/16 --bind-address 127.0.0.1 --secure-port $((port + 1)) --metrics-bind-addr "127.0.0.1:$port" \
  >"$dir/manager.log" 2>&1 &

scrape() {
  local i
  for i in {01..16}; do
    curl --silent --fail "http://127.0.0.1:$port/metrics" |
      grep -E '^(alicloud_|leader_election_master_status|workqueue_depth|process_resident_memory_bytes)' >"$dir/scrape.$i" || true
    sleep "$interval"
  done
}
scrape &
scraping=$!

service() { # service NAME PORT CLASS [ANNOTATION=VALUE…] prints a manifest
  cat <<YAML
---
apiVersion: v1
kind: Service
metadata:
  name: $1
  annotations: {$(printf '"service.beta.kubernetes.io/alibaba-cloud-loadbalancer-%s", ' "${@:4}" | sed 's/=/": "/g; s/, $//')}
spec: {type: LoadBalancer, loadBalancerClass: $3, selector: {app: web}, ports: [{port: $2}]}
YAML
}
clb=alibabacloud.com/clb nlb=alibabacloud.com/nlb
{
  service web 80 $clb name=web
  service https 443 $clb protocol-port=https:443 cert-id=cert-web
  service zones 80 $nlb zone-maps=cn-hangzhou-a:vsw-a,cn-hangzhou-b:vsw-b
  service closed 80 $clb acl-status=on acl-type=white acl-id=acl-none # the cloud refuses the list
  service misspelt 80 $clb address-type=intra
  for i in {1..70}; do service "many-$i" 80 $clb "name=many-$i"; done # more than the calls of a minute, and than the quota
} | kubectl create -f - >/dev/null
kubectl create -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: stranger}
spec:
  providerID: cn-hangzhou.i-stranger
  taints: [{key: node.cloudprovider.kubernetes.io/uninitialized, value: "true", effect: NoSchedule}]
YAML
sleep 45
curl --silent --fail --request DELETE "$cloud/_emulator/instances/i-sandbox0003" >/dev/null # its Node stays until the cloud has confirmed that
wait "$scraping"

begin=$(stat --format %Y "$(grep --files-with-matches . "$dir"/scrape.* | head -n 1)") # before that, the manager had not started
{ echo "# $begin"; awk '
  FNR == 1 { scrape++ }
  { value = $NF; series = substr($0, 1, length($0) - length(value) - 1); if (!(series in values)) { values[series] = ""; seen[series] = 0 }
    while (seen[series] < scrape - 1) { values[series] = values[series] " _"; seen[series]++ }
    values[series] = values[series] " " value; seen[series]++ }
  END { for (series in values) {
    while (seen[series] < scrape) { values[series] = values[series] " _"; seen[series]++ }
    print series values[series] } }
' "$dir"/scrape.* | LC_ALL=C sort; } >"$out"
wc "$out"
