import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type * as http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t from 'tap'
import type { Test } from 'tap'
import { gateway, listening } from '../../cli/command.ts'
import type { Running } from '../../cli/command.ts'
import { freePort } from '../../support/free-port.ts'
import { bodyOf, startUpstream } from '../../support/upstream.ts'

const KEY = 'sk-test-0123456789abcdef'

interface Outage {
  readonly running: Running
  readonly cwd: string
  /** Resolves when the upstream has a request to which it does not respond. */
  readonly held: Promise<void>
  /** Sends a request for a model; a request for `hang` gets no response. */
  ask(model?: string, options?: { readonly abort?: AbortSignal }): Promise<number>
}

interface State {
  readonly title: string
  /** Parts of the configuration. */
  readonly upstream?: string
  readonly rest?: string
  /** Causes the state. */
  readonly begin?: (outage: Outage, t: Test) => Promise<void> | void
  /** The output of `gateway status` in this state. */
  readonly shows: RegExp
}

/** All commands that change nothing in a running gateway, with the exit codes that are not a crash. */
const COMMANDS: readonly (readonly [args: readonly string[], codes: readonly number[]])[] = [
  [['status'], [0]],
  [['status', '--json'], [0]],
  [['usage'], [0, 1, 2]],
  [['usage', '--by', 'hour'], [0, 1, 2]],
  [['usage', '--csv'], [0, 1, 2]],
  [['keys', 'list'], [0, 1, 2]],
  [['cluster', 'status'], [0, 1, 2]],
  [['check'], [0, 2]],
  [['explain', '--model', 'm'], [0, 2]],
  [['reload'], [0, 1, 2]],
]

const CLUSTER = async () => `cluster: { postgres: "postgres://a:b@127.0.0.1:${await freePort()}/c", valkey: "redis://127.0.0.1:${await freePort()}" }\n`

const STATES: readonly State[] = [
  { title: 'everything works', shows: /up +- +closed/ },
  {
    title: 'an upstream fails its health checks', upstream: 'health: { path: /sick, every: 20ms }',
    shows: /up +all +open +\d{4}-\S+ +health check: status 500, \d+ failures|up +all +open +20\d\d-\S+ +health check: status 500/,
  },
  {
    title: 'a circuit is open', shows: /up +m +(open|half-open) +20\d\d-\S+ +status 500 \(request \S+\), \d+ failures since 20/,
    begin: async ({ ask }) => {
      for (let n = 0; n < 12; n++) await ask()
    },
  },
  {
    title: 'a circuit is half-open', shows: /up +hang +half-open +20\d\d-\S+ +status 500/,
    begin: async ({ ask }, t) => {
      const abort = new AbortController()
      t.teardown(() => abort.abort())
      // Later requests hang. The first request that the open circuit admits is the probe.
      for (let n = 0; n < 3; n++) await ask('hang')
      void probe(ask, abort.signal)
    },
  },
  {
    title: 'the source of a credential fails', upstream: 'auth: { bearer: { command: ["false"] } }', shows: /up +m +\S+ +20\d\d-\S+ +credentials: /,
    begin: async ({ ask }) => {
      for (let n = 0; n < 6; n++) await ask()
    },
  },
  { title: 'PostgreSQL and Valkey are unreachable', rest: 'CLUSTER', shows: /Outbox: +\d+ rows/, begin: async ({ ask }) => void await ask() },
  {
    title: 'the ledger cannot be written', shows: /Ledger: +cannot be written, \d+ rows? wait/,
    begin: async ({ cwd, ask }, t) => {
      const lock = new DatabaseSync(join(cwd, 'ledger.db'), { timeout: 60_000 })
      lock.exec('BEGIN IMMEDIATE')
      t.teardown(() => lock.close())
      await ask()
    },
  },
  {
    title: 'a reload was rejected', shows: /Last reload: +rejected 20\d\d-/,
    begin: async ({ cwd }) => {
      writeFileSync(join(cwd, 'gateway.yaml'), 'limit: {}\nledger: { file: ledger.db }\n')
      await gateway(['reload'], { cwd })
    },
  },
  {
    title: 'the gateway drains', shows: /^Gateway: +\S+, draining, since 20/,
    begin: async ({ running, ask, held }, t) => {
      const abort = new AbortController()
      t.teardown(() => abort.abort())
      void ask('wait', { abort: abort.signal })
      await held
      running.child.kill('SIGTERM')
    },
  },
]

async function probe(ask: Outage['ask'], abort: AbortSignal): Promise<void> {
  while (!abort.aborted) await ask('hang', { abort })
}

/**
 * Fails, hangs from the fourth request for `hang` on, and never responds to `wait`.
 *
 * @param onHeld called when it does not respond
 */
function startSickUpstream(t: Test, onHeld: () => void): Promise<{ readonly url: string }> {
  let hanging = 0
  return startUpstream(t, async (req: http.IncomingMessage, res: http.ServerResponse) => {
    const body = String(await bodyOf(req))
    if (body.includes('"wait"') || (body.includes('"hang"') && ++hanging > 3)) return onHeld()
    res.writeHead(500).end()
  })
}

for (const { title, upstream, rest = '', begin, shows } of STATES) {
  t.test(`commands do not crash while ${title}`, { timeout: 300_000 }, async t => {
    const cwd = mkdtempSync(join(tmpdir(), 'out-'))
    t.teardown(() => rmSync(cwd, { recursive: true, force: true }))
    const { promise: held, resolve: onHeld } = Promise.withResolvers<void>()
    const { url } = await startSickUpstream(t, onHeld)
    writeFileSync(join(cwd, 'gateway.yaml'), `server: { listen: 127.0.0.1:0, drain: 30s }
upstreams: { up: { url: "${url}"${upstream === undefined ? '' : `, ${upstream}`} } }
routes: [{ to: up, retries: 0 }]
keys: [{ name: team, key: ${KEY} }]
ledger: { file: ledger.db }
${rest === 'CLUSTER' ? await CLUSTER() : rest}`)
    const running = await listening(t, ['serve'], { cwd })
    const ask: Outage['ask'] = async (model = 'm', { abort } = {}) => {
      try {
        const response = await fetch(`${running.base}/v1/chat/completions`, {
          method: 'POST', headers: { 'authorization': `Bearer ${KEY}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model, messages: [] }), ...abort !== undefined && { signal: abort },
        })
        await response.arrayBuffer()
        return response.status
      } catch {
        // The request was aborted, or the gateway has ended.
        return 0
      }
    }
    await begin?.({ running, cwd, held, ask }, t)
    // The gateway needs a moment to detect the state.
    let status = await gateway(['status'], { cwd })
    for (let n = 0; n < 30 && status.code === 0 && !shows.test(status.stdout); n++) status = await gateway(['status'], { cwd })
    t.match(status, { code: 0, stderr: '', stdout: shows })
    await Promise.all(COMMANDS.map(async ([args, codes]) => {
      const { code, stdout, stderr } = await gateway(args, { cwd })
      t.ok(codes.includes(code ?? -1), `${args.join(' ')} ends with ${code}: ${stderr}`)
      t.notMatch(stderr + stdout, /\n\s+at |TypeError|RangeError|\bundefined\b|NaN|1970-/, args.join(' '))
    }))
    const closed = once(running.child, 'close')
    running.child.kill('SIGKILL')
    await closed
  })
}
