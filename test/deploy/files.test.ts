import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { loadConfig } from '../../src/config/load/load.ts'
import { cheapHash } from '../support/operator.ts'

const ROOT = join(import.meta.dirname, '../..')
const DEPLOY = join(ROOT, 'deploy')
const isMissing = (command: string, ...args: string[]) => (spawnSync(command, args).error ? `needs ${command}` : false)
const read = (path: string) => readFileSync(join(DEPLOY, path), 'utf8')

t.test('Dockerfile: all copied files exist, and the version of Node is new enough', async t => {
  const lines = read('Dockerfile').split('\n')
  const copied = lines.filter(line => line.startsWith('COPY ')).flatMap(line => line.split(' ').slice(1, -1))
    .filter(file => !file.startsWith('--')).map(file => file.replace('/build/', ''))
  // The build creates node_modules and dist.
  for (const file of copied.filter(file => file !== 'node_modules' && file !== 'dist')) t.ok(existsSync(join(ROOT, file)), file)
  const { engines, workspaces } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  t.ok(Number(/^FROM node:(\d+)/m.exec(lines.join('\n'))?.[1]) >= Number(engines.node.slice(2)))
  for (const workspace of workspaces) t.ok(lines.some(line => line.startsWith(`COPY ${workspace}/package.json`)), workspace)
})

t.test('compose: all mounted files exist, and the configuration is valid with the variables of the service', async t => {
  const { services, volumes } = parse(read('compose/compose.yaml'), { merge: true })
  const mounts = Object.values<{ volumes?: string[] }>(services).flatMap(({ volumes = [] }) => volumes)
  for (const mount of mounts) {
    const [source = ''] = mount.split(':')
    t.ok(source.startsWith('.') ? existsSync(join(DEPLOY, 'compose', source)) : source in volumes, source)
  }
  for (const { depends_on: others = [] } of Object.values<{ depends_on?: string[] }>(services)) {
    for (const other of others) t.ok(other in services, other)
  }
  const { environment } = services.gateway1
  const env = Object.fromEntries(Object.keys(environment).map(name => [name, `${name.toLowerCase()}-0123456789abcdef`]))
  const file = join(DEPLOY, 'compose/gateway.yaml')
  const { config } = loadConfig(file, { ...env, CONSOLE_PASSWORD: cheapHash('correct horse battery staple') })
  t.equal(config.cluster?.instance, env['GATEWAY_INSTANCE'])
  const names = read('compose/.env.example').match(/^\w+(?==)/gm)
  t.strictSame(new Set(names), new Set(Object.keys(environment).filter(name => name !== 'GATEWAY_INSTANCE')))
})

t.test('Prometheus accepts the configuration and rules in deploy', { skip: isMissing('promtool', '--version') }, async t => {
  const dir = t.testdir({ 'prometheus.yml': read('compose/prometheus.yml'), 'rules.yml': read('prometheus/rules.yml') })
  execFileSync('promtool', ['check', 'config', join(dir, 'prometheus.yml')])
})

t.test('systemd-analyze accepts the units', { skip: isMissing('systemd-analyze', '--version') }, async t => {
  const dir = t.testdir({
    'model-gateway.service': read('systemd/model-gateway.service').replace('/usr/bin/gateway', join(ROOT, 'bin/gateway.js')),
    'model-gateway.socket': read('systemd/model-gateway.socket'),
  })
  for (const unit of ['model-gateway.service', 'model-gateway.socket']) {
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', join(dir, unit)], { encoding: 'utf8' })
    t.equal(status, 0, stderr)
    t.notMatch(stderr, /model-gateway/)
  }
})

t.test('the chart renders valid objects', { skip: isMissing('helm', 'version') }, async t => {
  const chart = join(DEPLOY, 'helm/model-gateway')
  const helm = (...args: string[]) => execFileSync('helm', args, { encoding: 'utf8' })
  const objects = (...args: string[]) => parseAllDocuments(helm('template', 'mine', chart, '--kube-version', '1.31.0', ...args))
    .map(document => document.toJS())
  const refusal = (...args: string[]) => spawnSync('helm', ['template', 'mine', chart, ...args], { encoding: 'utf8' }).stderr
  const find = (all: ReturnType<typeof objects>, kind: string) => all.find(object => object.kind === kind)

  helm('lint', '--strict', chart)
  const cluster = ['--set-json', `config.cluster=${JSON.stringify({ valkey: 'redis://valkey', postgres: 'postgres://gateway@postgres/gateway' })}`]
  const all = objects(
    ...cluster, '--set', 'autoscaling.enabled=true', '--set', 'serviceMonitor.enabled=true', '--set', 'ingress.enabled=true',
    '--set', 'ingress.hosts={ai.example.com}', '--set', 'preStopSeconds=7',
  )
  t.strictSame(new Set(all.map(({ kind }) => kind)), new Set([
    'ConfigMap', 'HorizontalPodAutoscaler', 'Ingress', 'PodDisruptionBudget', 'Service', 'ServiceAccount', 'ServiceMonitor', 'StatefulSet',
  ]))
  const { spec } = find(all, 'StatefulSet')
  t.notOk('replicas' in spec, 'the autoscaler sets the number of replicas')
  const [container] = spec.template.spec.containers
  t.strictSame(container.ports.map((port: { containerPort: number }) => port.containerPort), [8080, 8081, 9464])
  t.strictSame(container.lifecycle.preStop.exec.command, ['sleep', '7'])
  t.equal(find(objects(), 'StatefulSet').spec.replicas, 1)
  t.equal(find(objects(...cluster, '--set', 'replicas=3'), 'StatefulSet').spec.replicas, 3)
  for (const [name, ...args] of [['replicas', 'replicas=2'], ['autoscaling.maxReplicas', 'autoscaling.enabled=true']] as const) {
    t.match(refusal('--set', args.join()), new RegExp(`${name.replace('.', '\\.')} is \\d+, but config\\.cluster is not set`))
  }

  for (const [scheme, ...tls] of [['HTTP'], ['HTTPS', '--set', 'config.server.tls.cert=/tls/tls.crt,config.server.tls.key=/tls/tls.key']] as const) {
    const { startupProbe, readinessProbe } = find(objects(...tls, '--set', 'config.server.listen=0.0.0.0:8443'), 'StatefulSet').spec.template.spec.containers[0]
    for (const probe of [startupProbe, readinessProbe]) t.strictSame(probe.httpGet, { path: '/api/status', port: 'http', scheme })
  }

  const dir = t.testdir({ 'gateway.yaml': find(all, 'ConfigMap').data['gateway.yaml'] })
  const { config } = loadConfig(join(dir, 'gateway.yaml'), { GATEWAY_KEY: 'sk-0123456789abcdef0123' })
  t.ok(spec.template.spec.terminationGracePeriodSeconds * 1000 > config.server.drain)
})

t.test('the Docker health check uses gateway status --ready, and the probes of the chart use the scheme of the listener', async t => {
  t.match(read('Dockerfile'), /HEALTHCHECK [^]*CMD \["gateway", "status", "--ready", "--config", "\/etc\/gateway\/gateway\.yaml"\]/)
  const probes = read('helm/model-gateway/templates/statefulset.yaml').match(/httpGet: .*/g)
  t.strictSame(probes, Array(2).fill('httpGet: { path: /api/status, port: http, scheme: {{ include "gateway.scheme" $config }} }'))
})

t.test('the chart refuses several replicas if the configuration has no cluster', async t => {
  t.equal(parse(read('helm/model-gateway/values.yaml')).replicas, 1)
  t.match(read('helm/model-gateway/templates/statefulset.yaml'), '{{- include "gateway.checkReplicas" . }}')
  t.match(read('helm/model-gateway/templates/_helpers.tpl'), /if and \(gt \(int \$count\) 1\) \(not \.Values\.config\.cluster\)[^{]*\{\{- fail /)
})
