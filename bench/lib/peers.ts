import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import type { ChildProcess } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { KEY } from './gateway-yaml.ts'
import { freePort, pause, startScript, stopAtExit, subject, temporaryDirectory } from './subjects.ts'
import type { Subject } from './subjects.ts'

/** Another proxy to compare with, and how it is found. */
interface Peer {
  readonly name: string
  /** What makes it available, for who reads that it was skipped. */
  readonly needs: string
  /** @returns null where it is not installed */
  start(upstreamPort: number): Promise<Subject | null>
}

/** A gateway that is no dependency: a variable of the environment names its program. */
interface GatewayPeer {
  readonly name: string
  readonly variable: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /**
   * Its configuration. In it, in `args`, `env` and `files`, `{port}`, `{port2}`, `{origin}`, `{upstream}`, `{key}`,
   * `{file}` and `{dir}` are replaced.
   */
  readonly config?: string
  /** More files that it reads, by their name in `{dir}`. */
  readonly files?: Readonly<Record<string, string>>
}

/** The rows that the targets compare with. */
export const BARE = 'node:http + undici'
export const HTTP_PROXY = 'http-proxy-3 alone'
export const BUSBAR = 'Busbar'

const GATEWAYS: readonly GatewayPeer[] = [
  { name: '@portkey-ai/gateway', variable: 'PORTKEY', args: ['--port={port}', '--headless'] },
  {
    name: 'LiteLLM',
    variable: 'LITELLM',
    args: ['--config', '{file}', '--host', '127.0.0.1', '--port', '{port}'],
    env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_LOG: 'ERROR', LITELLM_TELEMETRY: 'False' },
    config: `
model_list:
  - model_name: m
    litellm_params: { model: openai/m, api_base: "{upstream}", api_key: none }
general_settings: { master_key: "{key}" }
`,
  },
  {
    name: 'GoModel',
    variable: 'GOMODEL',
    env: {
      PORT: '{port}', GOMODEL_MASTER_KEY: '{key}', OPENAI_API_KEY: 'none', OPENAI_BASE_URL: '{upstream}',
      OPENAI_MODELS: 'm', CONFIGURED_PROVIDER_MODELS_MODE: 'allowlist', MODEL_LIST_URL: '', METRICS_ENABLED: 'true',
      LOG_LEVEL: 'error', SQLITE_PATH: '{dir}/gomodel.db', GOMODEL_CACHE_DIR: '{dir}',
    },
  },
  {
    // It keeps no ledger, and reads no key of the client.
    name: BUSBAR,
    variable: 'BUSBAR',
    env: { BUSBAR_CONFIG: '{file}', ADMIN_TOKEN: '{key}', UPSTREAM_KEY: 'none', RUST_LOG: 'error' },
    config: `
listen: "127.0.0.1:{port}"
admin_listen: "127.0.0.1:{port2}"
providers_file: providers.yaml
identity-providers:
  admin-tokens: { module: admin-tokens, token: { env: ADMIN_TOKEN } }
auth: { chain: [], admin_auth: [admin-tokens] }
providers: { up: { api_key: { env: UPSTREAM_KEY } } }
models: { m: { provider: up } }
pools: { default: { members: [{ model: m }] } }
`,
    files: { 'providers.yaml': 'up: { protocol: openai, base_url: "{origin}" }' },
  },
]

const PEERS: readonly Peer[] = [
  {
    name: BARE, needs: '',
    start: port => startScript(BARE, 'undici-proxy.ts', String(port)),
  },
  { name: 'nginx', needs: 'not installed', start: startNginx },
  { name: 'haproxy', needs: 'not installed', start: startHaproxy },
  {
    name: HTTP_PROXY, needs: '',
    start: port => startScript(HTTP_PROXY, 'bare-proxy.ts', String(port)),
  },
  ...[...GATEWAYS, ...otherGateways()].map(gateway => ({
    name: gateway.name,
    needs: `${gateway.variable} does not name its program`,
    start: (port: number) => startGatewayPeer(gateway, port),
  })),
]

/**
 * Starts the other proxies that are installed.
 *
 * @param isWanted by name
 * @returns them, and why each of the others is missing
 */
export async function startPeers(
  upstreamPort: number, isWanted: (name: string) => boolean,
): Promise<{ peers: Subject[]; missing: string[] }> {
  const peers: Subject[] = []
  const missing: string[] = []
  for (const { name, needs, start } of PEERS.filter(({ name }) => isWanted(name))) {
    try {
      const peer = await start(upstreamPort)
      if (peer === null) missing.push(`${name}: ${needs}`)
      else peers.push(peer)
    } catch (error) {
      missing.push(`${name}: ${(error as Error).message}`)
    }
  }
  return { peers, missing }
}

/** More gateways, of the JSON file that PEERS names: a list in the form of GATEWAYS. */
function otherGateways(): GatewayPeer[] {
  const file = process.env['PEERS'] ?? ''
  return file === '' ? [] : JSON.parse(readFileSync(file, 'utf8')) as GatewayPeer[]
}

async function startGatewayPeer(peer: GatewayPeer, upstreamPort: number): Promise<Subject | null> {
  const program = process.env[peer.variable] ?? ''
  if (program === '') return null
  const dir = temporaryDirectory('peer-bench-')
  const file = join(dir, 'config')
  const port = await freePort()
  const origin = `http://127.0.0.1:${upstreamPort}`
  const values: Record<string, string> = {
    port: String(port), port2: String(await freePort()), origin, upstream: `${origin}/v1`, key: KEY, file, dir,
  }
  const filled = (text: string) => text.replace(/\{(\w+)\}/g, (all, name: string) => values[name] ?? all)
  if (peer.config !== undefined) writeFileSync(file, filled(peer.config))
  for (const [name, text] of Object.entries(peer.files ?? {})) writeFileSync(join(dir, name), filled(text))
  const args = (peer.args ?? []).map(filled)
  const env = Object.fromEntries(Object.entries(peer.env ?? {}).map(([name, value]) => [name, filled(value)]))
  const [command, all] = program.endsWith('.js') ? [process.execPath, [program, ...args]] : [program, args]
  const child = spawn(command, all, { cwd: dir, env: { ...process.env, ...env }, stdio: 'ignore' })
  stopAtExit(child)
  await listening(port, child)
  return subject(peer.name, port, child)
}

/** With one worker, unbuffered, with its access log; null where it is not installed. */
export async function startNginx(upstreamPort: number): Promise<Subject | null> {
  if (spawnSync('nginx', ['-v']).status !== 0) return null
  const dir = temporaryDirectory('nginx-bench-')
  const port = await freePort()
  writeFileSync(join(dir, 'nginx.conf'), `
worker_processes 1; daemon off; pid ${dir}/pid; error_log ${dir}/error.log; user root;
events { worker_connections 20000; }
http {
  access_log ${dir}/access.log; client_body_temp_path ${dir}; proxy_temp_path ${dir};
  upstream up { server 127.0.0.1:${upstreamPort}; keepalive 256; }
  server { listen 127.0.0.1:${port}; keepalive_requests 100000000;
    location / {
      proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
    }
  }
}`)
  const child = spawn('nginx', ['-c', join(dir, 'nginx.conf'), '-p', dir], { stdio: 'ignore' })
  stopAtExit(child)
  for (;;) {
    if (child.exitCode !== null) throw new Error(`nginx ended with code ${child.exitCode}`)
    const worker = execFileSync('sh', ['-c', `pgrep -P ${child.pid} || true`]).toString().trim()
    if (worker !== '') return { name: 'nginx', port, pid: Number(worker), stop: () => child.kill() }
    await pause(20)
  }
}

/** In the foreground, one thread, connections reused; null where it is not installed. */
async function startHaproxy(upstreamPort: number): Promise<Subject | null> {
  if (spawnSync('haproxy', ['-v']).status !== 0) return null
  const file = join(temporaryDirectory('haproxy-bench-'), 'haproxy.cfg')
  const port = await freePort()
  writeFileSync(file, `
global
  nbthread 1
  maxconn 4000
defaults
  mode http
  timeout connect 10s
  timeout client 60s
  timeout server 60s
  http-reuse always
frontend in
  bind 127.0.0.1:${port}
  default_backend up
backend up
  server up 127.0.0.1:${upstreamPort}
`)
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
  stopAtExit(child)
  await listening(port, child)
  return subject('haproxy', port, child)
}

/** The headers by which Portkey finds the upstream; sent to all, so that all get the same bytes. */
export function portkeyHeaders(upstreamPort: number): string {
  return `X-Portkey-Provider: openai\r\nX-Portkey-Custom-Host: http://127.0.0.1:${upstreamPort}/v1\r\n`
}

/** As nginx calls itself, such as `nginx/1.22.1`. */
export function nginxVersion(): string {
  return /nginx\/[\d.]+/.exec(spawnSync('nginx', ['-v'], { encoding: 'utf8' }).stderr ?? '')?.[0]
    ?? 'no nginx'
}

/** Python with its libraries takes half a minute on a busy machine. */
const MAX_START = 120_000

async function listening(port: number, child: ChildProcess): Promise<void> {
  let failure: Error | null = null
  child.once('error', error => (failure = error))
  const until = performance.now() + MAX_START
  while (performance.now() < until && child.exitCode === null && failure === null) {
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return
    } catch {
      await pause(50)
    } finally {
      socket.destroy()
    }
  }
  throw failure ?? new Error(`nothing listens on port ${port}`)
}
