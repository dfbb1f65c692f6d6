{{- define "dealgate.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "dealgate.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dealgate.services.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}-services
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "dealgate.labels" -}}
{{ include "dealgate.selector" . }}
{{ include "dealgate.release" . }}
{{- end }}

{{- define "dealgate.services.labels" -}}
{{ include "dealgate.services.selector" . }}
{{ include "dealgate.release" . }}
{{- end }}

{{- define "dealgate.release" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Of a container or a service: the argument is the key that has the number. */ -}}
{{- define "dealgate.services.ports" -}}
{{- $key := . -}}
{{- range $name, $port := dict "gateway" 9100 "platform" 9200 "payment" 9300 }}
- name: {{ $name }}
  {{ $key }}: {{ $port }}
{{- end }}
{{- end }}

{{- define "dealgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "dealgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "dealgate.check" -}}
{{- if gt (int .Values.replicas) 1 }}
{{- if not (or .Values.config.gatewayUrl .Values.services.replicas) }}{{ fail "replicas > 1 needs config.gatewayUrl or services.replicas: the embedded gateway has its objects in one pod" }}{{ end }}
{{- if not .Values.secretName }}{{ fail "replicas > 1 needs secretName: a Secret with DEALGATE_STATE, that all pods share" }}{{ end }}
{{- if eq (.Values.config.staging | default "local") "local" }}{{ fail "replicas > 1 needs config.staging, such as gateway: parts of an upload reach any pod" }}{{ end }}
{{- end }}
{{- if and .Values.persistence.existingClaim (gt (int .Values.replicas) 1) }}{{ fail "persistence.existingClaim is the data folder of one pod: it needs replicas: 1" }}{{ end }}
{{- if .Values.services.replicas }}
{{- if not .Values.services.secretName }}{{ fail "services.replicas needs services.secretName: a Secret with DEALGATE_DATABASE" }}{{ end }}
{{- if .Values.config.gatewayUrl }}{{ fail "services.replicas sets config.gatewayUrl: leave that out" }}{{ end }}
{{- range list "data" "gatewayHost" "gatewayPort" "platformHost" "platformPort" "paymentHost" "paymentPort" }}
{{- if hasKey $.Values.services.config . }}{{ fail (printf "services.config.%s is set by the chart" .) }}{{ end }}
{{- end }}
{{- end }}
{{- if and .Values.console.host (not .Values.console.port) }}{{ fail "console.host needs console.port" }}{{ end }}
{{- if and .Values.console.host (not (and .Values.ingress.enabled .Values.ingress.hosts)) }}{{ fail "console.host needs ingress.enabled and ingress.hosts" }}{{ end }}
{{- range list "data" "port" "host" "consolePort" "tlsCert" "tlsKey" }}
{{- if hasKey $.Values.config . }}{{ fail (printf "config.%s is set by the chart" .) }}{{ end }}
{{- end }}
{{- end }}
