{{- define "gateway.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gateway.labels" -}}
{{ include "gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The port of a listener of the configuration. */}}
{{- define "gateway.port" -}}
{{- . | toString | splitList ":" | last -}}
{{- end }}

{{/* What probes speak to server.listen. Kubernetes does not check the certificate. */}}
{{- define "gateway.scheme" -}}
{{- ternary "HTTPS" "HTTP" (not (empty (.server).tls)) -}}
{{- end }}

{{/* Pods that share nothing have created keys, console sessions and limits of their own: a client meets another pod each time. */}}
{{- define "gateway.checkReplicas" -}}
{{- $name := ternary "autoscaling.maxReplicas" "replicas" .Values.autoscaling.enabled -}}
{{- $count := ternary .Values.autoscaling.maxReplicas .Values.replicas .Values.autoscaling.enabled -}}
{{- if and (gt (int $count) 1) (not .Values.config.cluster) -}}
{{- fail (printf "%s is %d, but config.cluster is not set: each gateway would have its own created keys, console sessions and limits. Set config.cluster with valkey and postgres, or %s: 1" $name (int $count) $name) -}}
{{- end -}}
{{- end }}
