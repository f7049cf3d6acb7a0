{{- /* ccm.pod is the pod template of the Deployment and of the DaemonSet. */ -}}
{{- define "ccm.pod" -}}
metadata:
  labels:
    {{- include "ccm.selector" . | nindent 4 }}
    {{- include "ccm.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: cloud-controller-manager
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if .Values.hostNetwork }}
  # The pod network may need the routes that this program writes, and the cluster DNS needs the pod network.
  hostNetwork: true
  dnsPolicy: Default
  {{- end }}
  priorityClassName: {{ .Values.priorityClassName }}
  {{- include "ccm.placement" . | nindent 2 }}
      {{- if eq (include "ccm.nodes" .) "prefer" }}
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        preference:
          matchExpressions:
          - key: node-role.kubernetes.io/control-plane
            operator: Exists
      - weight: 100
        preference:
          matchExpressions:
          - key: node-role.kubernetes.io/master
            operator: Exists
      {{- end }}
    # Two pods on one machine would use the same port, and fail together.
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{- include "ccm.selector" . | nindent 12 }}
  securityContext: {{- include "ccm.podSecurity" . | nindent 4 }}
  containers:
  - name: cloud-controller-manager
    {{- include "ccm.container" . | nindent 4 }}
    args:
    {{- include "ccm.args" . | nindent 4 }}
    ports:
    - name: https
      containerPort: 10258
    {{- $probe := dict "path" "/livez" "port" "https" "scheme" "HTTPS" }}
    {{- if .Values.hostNetwork }}
    {{- $_ := set $probe "host" "127.0.0.1" }}
    {{- end }}
    # At startup, the program waits for the API server and for the cloud.
    startupProbe:
      httpGet: {{- toYaml $probe | nindent 8 }}
      periodSeconds: 5
      timeoutSeconds: 5
      failureThreshold: 24
    livenessProbe:
      httpGet: {{- toYaml $probe | nindent 8 }}
      periodSeconds: 15
      timeoutSeconds: 15
      failureThreshold: 8
    readinessProbe:
      httpGet: {{- toYaml (merge (dict "path" "/readyz") $probe) | nindent 8 }}
      periodSeconds: 10
      timeoutSeconds: 5
    resources: {{- toYaml .Values.resources | nindent 6 }}
  volumes:
  {{- include "ccm.volumes" . | nindent 2 }}
{{- end -}}

{{- /* ccm.placement is where the manager and the test of the release can run. The rest of the affinity follows it. */ -}}
{{- define "ccm.placement" -}}
# Until this program has run, every node has the uninitialized taint, and nodes without routes are not ready.
tolerations:
- key: node.cloudprovider.kubernetes.io/uninitialized
  operator: Exists
  effect: NoSchedule
- key: node-role.kubernetes.io/control-plane
  operator: Exists
- key: node-role.kubernetes.io/master
  operator: Exists
- key: node.kubernetes.io/not-ready
  operator: Exists
- key: node.kubernetes.io/network-unavailable
  operator: Exists
  effect: NoSchedule
{{- with .Values.tolerations }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      {{- if eq (include "ccm.nodes" .) "require" }}
      - matchExpressions:
        - key: node-role.kubernetes.io/control-plane
          operator: Exists
        {{- include "ccm.inTheCloud" . | nindent 8 }}
      - matchExpressions:
        - key: node-role.kubernetes.io/master
          operator: Exists
        {{- include "ccm.inTheCloud" . | nindent 8 }}
      {{- else }}
      - matchExpressions:
        {{- include "ccm.inTheCloud" . | nindent 8 }}
      {{- end }}
{{- end -}}

{{- /* ccm.inTheCloud keeps pods off machines outside of the VPC, which reach neither its endpoints nor the metadata service. */ -}}
{{- define "ccm.inTheCloud" -}}
- key: node.alibabacloud.com/on-premises
  operator: NotIn
  values: ["true"]
{{- end -}}

{{- define "ccm.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- /* ccm.container is common to the manager and to the test of the release. */ -}}
{{- define "ccm.container" -}}
image: {{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
command:
- /cloud-controller-manager
{{- with include "ccm.env" . }}
env:
{{- . | nindent 0 }}
{{- end }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
# `kubectl describe pod` shows the last log line, which states the reason.
terminationMessagePolicy: FallbackToLogsOnError
volumeMounts:
# Whole directories, because a file that is mounted with subPath does not follow changes.
- name: cloud-config
  mountPath: /etc/kubernetes/config
  readOnly: true
{{- if .Values.credentials.rrsa.enabled }}
- name: rrsa-token
  mountPath: /var/run/secrets/ack.alibabacloud.com/rrsa-tokens
  readOnly: true
{{- end }}
{{- if .Values.credentials.secretName }}
- name: credentials
  mountPath: /etc/kubernetes/credentials
  readOnly: true
{{- end }}
{{- if .Values.serving.tlsSecretName }}
- name: serving
  mountPath: /etc/kubernetes/serving
  readOnly: true
{{- end }}
{{- end -}}

{{- /* ccm.cloudArgs are the flags that say where the cloud is. */ -}}
{{- define "ccm.cloudArgs" -}}
- --cloud-provider=alicloud
- --cloud-config=/etc/kubernetes/config/cloud-config.conf
{{- if .Values.credentials.secretName }}
- --credentials-file=/etc/kubernetes/credentials
{{- end }}
- {{ printf "--policy=%s" (include "ccm.policy" .) | quote }}
{{- end -}}

{{- /* ccm.policy is the policy for the authors of Services, as JSON. Lists without items are left out. */ -}}
{{- define "ccm.policy" -}}
{{- $policy := dict -}}
{{- range $field, $value := .Values.policy -}}
{{- if $value -}}
{{- $_ := set $policy $field $value -}}
{{- end -}}
{{- end -}}
{{- toJson $policy -}}
{{- end -}}

{{- define "ccm.args" -}}
{{ include "ccm.cloudArgs" . }}
- --leader-elect=true
- --configure-cloud-routes={{ .Values.routes.enabled }}
{{- if not .Values.nlb.enabled }}
- --controllers=*,-nlb
{{- end }}
{{- if .Values.clusterCIDR }}
- --cluster-cidr={{ .Values.clusterCIDR }}
{{- end }}
{{- if .Values.routes.enabled }}
- --route-reconciliation-period={{ .Values.routes.reconciliationPeriod }}
{{- end }}
{{- if .Values.serving.tlsSecretName }}
- --tls-cert-file=/etc/kubernetes/serving/tls.crt
- --tls-private-key-file=/etc/kubernetes/serving/tls.key
{{- end }}
{{- range .Values.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{- define "ccm.env" -}}
{{- if dig "limits" "memory" "" .Values.resources }}
# The program keeps its heap below this limit.
- name: CONTAINER_MEMORY_LIMIT
  valueFrom:
    resourceFieldRef:
      resource: limits.memory
{{- end }}
{{- range $product, $address := .Values.endpoints }}
{{- if $address }}
- name: {{ upper $product }}_ENDPOINT
  value: {{ $address | quote }}
{{- end }}
{{- end }}
{{- with .Values.credentials }}
{{- if .rrsa.enabled }}
- name: ALIBABA_CLOUD_ROLE_ARN
  value: {{ .rrsa.roleARN }}
- name: ALIBABA_CLOUD_OIDC_PROVIDER_ARN
  value: {{ .rrsa.oidcProviderARN }}
- name: ALIBABA_CLOUD_OIDC_TOKEN_FILE
  value: /var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end -}}

{{- define "ccm.volumes" -}}
- name: cloud-config
  {{- if .Values.cloudConfig.global }}
  secret:
    secretName: cloud-controller-manager-config
  {{- else if .Values.cloudConfig.secretName }}
  secret:
    secretName: {{ .Values.cloudConfig.secretName }}
  {{- else }}
  configMap:
    name: {{ .Values.cloudConfig.configMapName }}
  {{- end }}
{{- with .Values.credentials }}
{{- if .secretName }}
- name: credentials
  secret:
    secretName: {{ .secretName }}
    items:
    - key: {{ .secretIDKey }}
      path: accessKeyID
    - key: {{ .secretSecretKey }}
      path: accessKeySecret
{{- end }}
{{- end }}
{{- with .Values.credentials.rrsa }}
{{- if .enabled }}
- name: rrsa-token
  projected:
    sources:
    - serviceAccountToken:
        path: token
        audience: {{ .audience }}
        expirationSeconds: {{ .expirationSeconds | int }}
{{- end }}
{{- end }}
{{- with .Values.serving.tlsSecretName }}
- name: serving
  secret:
    secretName: {{ . }}
{{- end }}
{{- end -}}

{{- /* ccm.strategy is that of the Deployment. `helm --wait` of Helm 3 accepts as many missing pods as a rolling update permits: an
installation, or any release with one replica, would succeed with a pod that crashes. With Recreate it accepts none. Updates then stop all
pods first, which makes no difference with one replica; an installation gets its rolling updates with the first upgrade. Helm 4 waits for all
pods anyway, and a manifest that is only rendered, as for kubectl, has to serve for updates, too. */ -}}
{{- define "ccm.strategy" -}}
{{- $waits := and .Release.IsInstall (hasPrefix "v3." .Capabilities.HelmVersion.Version) (lookup "v1" "Namespace" "" "kube-system") -}}
{{- if or $waits (eq (int .Values.replicas) 1) -}}
type: Recreate
{{- else -}}
# Stop a pod before starting its replacement: if there are as many machines as replicas, there is no room for another pod.
type: RollingUpdate
rollingUpdate:
  maxSurge: 0
  maxUnavailable: 1
{{- end -}}
{{- end -}}
