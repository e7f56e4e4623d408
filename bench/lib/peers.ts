import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { freePort, pause, startScript, stopAtExit, subject, temporaryDirectory } from './subjects.ts'
import type { Subject } from './subjects.ts'

/** Other proxies to stand beside, each with one thread; and the names of those that are not installed. */
export async function startPeers(upstreamPort: number): Promise<{ peers: Subject[]; missing: string[] }> {
  const found = {
    nginx: await startNginx(upstreamPort),
    haproxy: await startHaproxy(upstreamPort),
    'http-proxy-3 alone': await startScript('http-proxy-3 alone', 'bare-proxy.ts', String(upstreamPort)),
    '@portkey-ai/gateway (PORTKEY=its start-server.js)': await startPortkey(),
  }
  return {
    peers: Object.values(found).filter(peer => peer !== null),
    missing: Object.entries(found).filter(([, peer]) => peer === null).map(([name]) => name),
  }
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
  await listening(port)
  return subject('haproxy', port, child)
}

/** Not a dependency: PORTKEY names the `build/start-server.js` of an installed @portkey-ai/gateway. */
async function startPortkey(): Promise<Subject | null> {
  const script = process.env['PORTKEY'] ?? ''
  if (!existsSync(script)) return null
  const port = await freePort()
  const child = spawn(process.execPath, [script, `--port=${port}`, '--headless'], { stdio: 'ignore' })
  stopAtExit(child)
  await listening(port)
  return subject('@portkey-ai/gateway', port, child)
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

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
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
  throw new Error(`nothing listens on port ${port}`)
}
