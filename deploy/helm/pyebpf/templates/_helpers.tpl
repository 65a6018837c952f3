{{- define "pyebpf.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "pyebpf.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "pyebpf.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "pyebpf.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "pyebpf.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "pyebpf.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "pyebpf.selector" -}}
app.kubernetes.io/name: {{ include "pyebpf.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pyebpf.labels" -}}
{{ include "pyebpf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* A name of its own for each content: pods go on with the one that they were started with. */}}
{{- define "pyebpf.configMap" -}}
{{- printf "%s-%s" (include "pyebpf.fullname" . | trunc 54 | trimSuffix "-") (toYaml .Values.config | sha256sum | trunc 8) }}
{{- end }}

{{- define "pyebpf.podNames" -}}
{{- dig "kubernetes" "source" "none" .Values.config }}
{{- end }}

{{- define "pyebpf.asksWithToken" -}}
{{- has (include "pyebpf.podNames" .) (list "api" "kubelet") }}
{{- end }}

{{- define "pyebpf.isLocal" -}}
{{- has .Values.config.http.address (list "127.0.0.1" "::1") }}
{{- end }}

{{- define "pyebpf.probe" -}}
httpGet:
  path: {{ .path }}
  port: metrics
  {{- if eq (include "pyebpf.isLocal" .root) "true" }}
  host: {{ .root.Values.config.http.address | quote }}
  {{- end }}
{{ toYaml .probe }}
{{- end }}
