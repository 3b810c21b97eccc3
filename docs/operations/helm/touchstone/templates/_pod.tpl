{{- define "touchstone.labels" -}}
app.kubernetes.io/name: touchstone
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "touchstone.selector" -}}
app.kubernetes.io/name: touchstone
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "touchstone.image" -}}
{{- $image := .Values.image -}}
{{- $repository := required "Set image.repository: where you pushed the image." $image.repository -}}
{{- if $image.digest }}{{ $repository }}@{{ $image.digest }}{{ else }}{{ $repository }}:{{ required "Set image.tag or image.digest." $image.tag }}{{ end }}
{{- end }}

{{- define "touchstone.environment" -}}
{{- $values := .root.Values -}}
{{/* Made by the process, so that it owns it and may close it to others. */ -}}
- {name: TOUCHSTONE_HOME, value: /data/home}
- {name: DATABASE_URL_FILE, value: /run/secrets/touchstone/database_url}
- {name: CELERY_BROKER_URL_FILE, value: /run/secrets/touchstone/broker_url}
- {name: TOUCHSTONE_SECRET_KEY_FILE, value: /run/secrets/touchstone/secret_key}
{{- if and (eq .name "migrate") $values.migrationSecretKey }}
- {name: TOUCHSTONE_MIGRATION_DATABASE_URL_FILE, value: /run/secrets/touchstone/migration_database_url}
{{- end }}
- name: TOUCHSTONE_PUBLIC_URL
  value: {{ required "Set publicUrl: the address that people use." $values.publicUrl | quote }}
{{- $host := regexReplaceAll "^https?://([^/:]+).*$" $values.publicUrl "${1}" }}
- name: TOUCHSTONE_ALLOWED_HOSTS
  value: {{ list $host (printf "%s-web" .root.Release.Name) "localhost" "127.0.0.1" | uniq | join "," | quote }}
- name: TOUCHSTONE_REWARDS_ADDRESS
  value: http://{{ .root.Release.Name }}-rewards:8001
{{- if $values.ingress.enabled }}
- {name: TOUCHSTONE_BEHIND_PROXY, value: "1"}
- name: TOUCHSTONE_TRUSTED_PROXIES
  value: {{ $values.ingress.trustedProxies | quote }}
{{- end }}
- name: TOUCHSTONE_S3_BUCKET
  value: {{ required "Set bucket.name: artifacts are shared by all pods." $values.bucket.name | quote }}
{{- with $values.bucket.url }}
- name: TOUCHSTONE_S3_URL
  value: {{ . | quote }}
{{- end }}
{{- if $values.bucketKeysInSecret }}
- {name: AWS_ACCESS_KEY_ID_FILE, value: /run/secrets/touchstone/aws_access_key_id}
- {name: AWS_SECRET_ACCESS_KEY_FILE, value: /run/secrets/touchstone/aws_secret_access_key}
{{- end }}
{{- if eq .name "rewards" }}
- name: TOUCHSTONE_REWARDS_DEVICE
  value: {{ $values.rewards.device | quote }}
{{- end }}
{{- range $name, $value := $values.settings }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* The pod of a process. root, name; args: of manage.py; values: of the process; port, probe: optional. */}}
{{- define "touchstone.pod" -}}
{{- $values := .root.Values -}}
serviceAccountName: {{ if ne .name "migrate" }}{{ .root.Release.Name }}{{ else }}default{{ end }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 90
{{- with $values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .name }}
    image: {{ include "touchstone.image" .root | quote }}
    imagePullPolicy: {{ $values.image.pullPolicy }}
    args: {{ toJson .args }}
    env: {{ include "touchstone.environment" . | nindent 6 }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
    {{- with .port }}
    ports:
      - {name: http, containerPort: {{ . }}}
    startupProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 5
      failureThreshold: 60
    livenessProbe:
      httpGet: {path: /healthz, port: http}
      periodSeconds: 15
      timeoutSeconds: 10
      failureThreshold: 4
    readinessProbe:
      httpGet: {path: /readyz, port: http}
      periodSeconds: 5
      timeoutSeconds: 5
    {{- end }}
    {{- with .alive }}
    livenessProbe:
      exec: {command: [python, manage.py, alive, {{ . }}]}
      initialDelaySeconds: 60
      periodSeconds: 60
      timeoutSeconds: 30
    {{- end }}
    resources:
      requests: {{ toYaml .values.resources.requests | nindent 8 }}
      limits: {{ toYaml .values.resources.limits | nindent 8 }}
      {{- if .values.gpus }}
        {{ $values.gpu.resourceName }}: {{ .values.gpus }}
      {{- end }}
    volumeMounts:
      - {name: secrets, mountPath: /run/secrets/touchstone, readOnly: true}
      - {name: data, mountPath: /data}
      - {name: tmp, mountPath: /tmp}
      - {name: shm, mountPath: /dev/shm}
      - {name: scratch, mountPath: /data/tmp}
volumes:
  - name: secrets
    secret:
      secretName: {{ $values.existingSecret }}
      defaultMode: 0440
      items:
        - {key: database_url, path: database_url}
        - {key: broker_url, path: broker_url}
        - {key: secret_key, path: secret_key}
        {{- if and (eq .name "migrate") $values.migrationSecretKey }}
        - {key: {{ $values.migrationSecretKey }}, path: migration_database_url}
        {{- end }}
        {{- if $values.bucketKeysInSecret }}
        - {key: aws_access_key_id, path: aws_access_key_id}
        - {key: aws_secret_access_key, path: aws_secret_access_key}
        {{- end }}
  - {name: data, emptyDir: {}}
  - {name: scratch, emptyDir: {}}
  - {name: tmp, emptyDir: {sizeLimit: 256Mi}}
  - {name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}
{{- end }}
