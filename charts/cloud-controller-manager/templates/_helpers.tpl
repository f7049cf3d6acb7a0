{{- define "ccm.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "ccm.selector" -}}
k8s-app: cloud-controller-manager
{{- end -}}

{{- define "initor.labels" -}}
app.kubernetes.io/name: provider-initor
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- /* ccm.nodes is controlPlaneNodes with its default: with "prefer", a DaemonSet would run on all nodes. */ -}}
{{- define "ccm.nodes" -}}
{{- .Values.controlPlaneNodes | default (eq .Values.kind "DaemonSet" | ternary "require" "prefer") -}}
{{- end -}}

{{- /* ccm.check rejects combinations of values that the schema accepts one by one. */ -}}
{{- define "ccm.check" -}}
{{- $v := .Values -}}
{{- if and $v.routes.enabled (not $v.clusterCIDR) -}}
{{- fail "clusterCIDR is empty: set it to the cluster's pod network (for example 10.244.0.0/16), or set routes.enabled to false" -}}
{{- end -}}
{{- range keys $v.cloudConfig.global -}}
{{- if has (lower .) (list "accesskeyid" "accesskeysecret") -}}
{{- fail (printf "cloudConfig.global.%s is set: set the access key in plain text with credentials.accessKeyID and credentials.accessKeySecret, or use credentials.secretName" .) -}}
{{- end -}}
{{- end -}}
{{- with $v.credentials -}}
{{- if ne (empty .accessKeyID) (empty .accessKeySecret) -}}
{{- fail "credentials.accessKeyID and credentials.accessKeySecret: only one is set; set both or neither" -}}
{{- end -}}
{{- if and .accessKeyID (not $v.cloudConfig.global) -}}
{{- fail "credentials.accessKeyID is set and cloudConfig.global is empty: the chart adds the key to the configuration that it creates from cloudConfig.global; set for example cloudConfig.global.region=cn-hangzhou" -}}
{{- end -}}
{{- if gt (len (compact (list .secretName .accessKeyID (.rrsa.enabled | ternary "rrsa" "")))) 1 -}}
{{- fail "credentials: more than one of secretName, accessKeyID and rrsa.enabled is set; set one of them, or none to use the access key in the cloud-config or the RAM role of the instance" -}}
{{- end -}}
{{- if and .rrsa.enabled (or (not .rrsa.roleARN) (not .rrsa.oidcProviderARN)) -}}
{{- fail "credentials.rrsa.enabled is true: set credentials.rrsa.roleARN and credentials.rrsa.oidcProviderARN, for example acs:ram::123456789012:role/ccm and acs:ram::123456789012:oidc-provider/my-cluster" -}}
{{- end -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled $v.hostNetwork -}}
{{- fail "networkPolicy.enabled is true and hostNetwork is true: a NetworkPolicy does not apply to pods that use the network of the node; set one of them to false" -}}
{{- end -}}
{{- include "ccm.checkNamespace" . -}}
{{- end -}}

{{- /* ccm.checkNamespace verifies, if Helm can reach the cluster, that the namespace admits pods with hostNetwork. Without this check, the
release would install, and only an event of the ReplicaSet would state why it has no pods. */ -}}
{{- define "ccm.checkNamespace" -}}
{{- $level := dig "metadata" "labels" "pod-security.kubernetes.io/enforce" "" (lookup "v1" "Namespace" "" .Release.Namespace) -}}
{{- if has $level (list "baseline" "restricted") -}}
{{- $way := printf "kubectl label namespace %s --overwrite pod-security.kubernetes.io/enforce=privileged, or use another namespace such as kube-system" .Release.Namespace -}}
{{- if .Values.hostNetwork -}}
{{- fail (printf "hostNetwork is true, and the namespace %s does not admit pods with hostNetwork (it enforces the Pod Security Standard %s): run %s, or set hostNetwork=false if pods reach each other without routes of this manager" .Release.Namespace $level $way) -}}
{{- end -}}
{{- if .Values.initializer.enabled -}}
{{- fail (printf "initializer.enabled is true, and the namespace %s does not admit its pods with hostNetwork (it enforces the Pod Security Standard %s): run %s" .Release.Namespace $level $way) -}}
{{- end -}}
{{- end -}}
{{- end -}}
