{{- /* initor.podTemplate is the pod of provider-initor on any node. */ -}}
{{- define "initor.podTemplate" -}}
metadata:
  labels: {{- include "initor.labels" . | nindent 4 }}
spec:
  serviceAccountName: provider-initor
  restartPolicy: OnFailure
  # The metadata service responds on the network of the node, even before the pod network works.
  hostNetwork: true
  dnsPolicy: Default
  priorityClassName: system-node-critical
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - key: type
            operator: NotIn
            values: [virtual-kubelet]
  tolerations:
  - operator: Exists
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    seccompProfile:
      type: RuntimeDefault
  containers:
  - name: provider-initor
    image: {{ .Values.initializer.image.repository }}:{{ .Values.initializer.image.tag | default .Chart.AppVersion }}
    imagePullPolicy: {{ .Values.initializer.image.pullPolicy }}
    command:
    - /usr/bin/init
    {{- if or .Values.initializer.cloudConfig.configMapName .Values.initializer.extraArgs }}
    args:
    {{- if .Values.initializer.cloudConfig.configMapName }}
    - --cloud-config=/etc/kubernetes/config/cloud-config.conf
    {{- end }}
    {{- with .Values.initializer.extraArgs }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- end }}
    env:
    - name: NODE_NAME
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    # The result, for `provider-initor status`. After a failure, it is the last log line, which states the reason.
    - name: REPORT_FILE
      value: /dev/termination-log
    terminationMessagePath: /dev/termination-log
    terminationMessagePolicy: FallbackToLogsOnError
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
    resources:
      requests:
        cpu: 10m
        memory: 16Mi
      limits:
        memory: 64Mi
    {{- if .Values.initializer.cloudConfig.configMapName }}
    volumeMounts:
    - name: cloud-config
      mountPath: /etc/kubernetes/config
      readOnly: true
  volumes:
  - name: cloud-config
    configMap:
      name: {{ .Values.initializer.cloudConfig.configMapName }}
    {{- end }}
{{- end -}}

{{- /* initor.podTemplateOn assigns .pod to the node .node without the scheduler, which may not run yet. */ -}}
{{- define "initor.podTemplateOn" -}}
{{- $template := fromYaml .pod -}}
{{- $_ := set $template.spec "nodeName" .node -}}
{{- $_ := unset $template.spec "affinity" -}}
{{- toYaml $template -}}
{{- end -}}

{{- /* initor.nodes lists the nodes to create a Job for, as JSON. Virtual-kubelet nodes have no machine. */ -}}
{{- define "initor.nodes" -}}
{{- $nodes := .Values.initializer.nodes -}}
{{- if not $nodes -}}
{{- range (lookup "v1" "Node" "" "").items -}}
{{- if ne (dig "metadata" "labels" "type" "" .) "virtual-kubelet" -}}
{{- $nodes = append $nodes .metadata.name -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $nodes -}}
{{- end -}}
