import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { loadConfig } from '../../../../src/config/load/load.ts'
import { openConsole } from '../../../../src/console/open-console.ts'
import { startGateway } from '../../../../src/gateway/server.ts'
import { makeFolder } from '../../../support/folder.ts'
import { cheapHash } from '../../../support/operator.ts'
import { writePast } from './past.ts'
import { KEYS, PASSWORD } from './people.ts'
import { makeTraffic } from './traffic.ts'

/** A gateway with a month of usage and running requests. */
export interface Scene {
  /** The address of the gateway for clients. */
  readonly base: string
  /** `http://127.0.0.1:1234`: the console is below /console/. */
  readonly origin: string
  /** Path of the configuration file. */
  readonly file: string
  /** Writes the configuration file and reloads the gateway. */
  reload(yaml: string): Promise<void>
  /** Request ids by the outcome of the request. */
  readonly requests: Readonly<Record<'answered' | 'failed' | 'gone' | 'rescued' | 'continued', string>>
}

/** Whether the pages are built. */
export const IS_BUILT = existsSync(new URL('../../../../dist/console/web/index.html', import.meta.url))

/** Path of the configuration file as shown on the pages and in screenshots. */
const SHOWN = '/etc/model-gateway/gateway.yaml'

export interface SceneOptions {
  /** Whether the configuration has console users. Default: true. */
  readonly withUsers?: boolean
}

/**
 * Starts a gateway with several keys, several simulated upstreams and a ledger with a month of usage, and
 * sends requests of all kinds. The gateway is closed when the test ends.
 */
export async function startScene(t: Test, { withUsers = true }: SceneOptions = {}): Promise<Scene> {
  const directory = makeFolder()
  const file = join(directory, 'gateway.yaml')
  writeFileSync(file, configuration(withUsers ? cheapHash(PASSWORD) : null))
  await writePast(join(directory, 'ledger.db'), Date.now())
  const { config } = loadConfig(file, {})
  const gateway = await startGateway({ ...config, file: SHOWN }, {
    log: pino({ level: 'silent' }), version: '0.1.0', mount: openConsole({ clock: systemClock }),
  })
  t.teardown(async () => {
    await gateway.close()
    rmSync(directory, { recursive: true })
  })
  const { base, console: origin } = gateway.addresses
  if (origin === null) throw new Error('the console does not listen')
  const requests = await makeTraffic(t, base)
  const reload = async (yaml: string): Promise<void> => {
    writeFileSync(file, yaml)
    await gateway.reload(async () => loadConfig(file, {}), 'SIGHUP')
  }
  return { base, origin, file, reload, requests }
}

function configuration(hash: string | null): string {
  const users = hash === null ? '' : `
  users:
    - { name: ops, password: "${hash}", role: admin }
    - { name: auditor, password: "${hash}", role: viewer }`
  return `server: { listen: 127.0.0.1:0 }
console:
  listen: 127.0.0.1:0${users}
docs: { listen: 127.0.0.1:8082 }               # linked to; not served in these tests
upstreams:
  openai: { simulator: true }
  anthropic: { simulator: true }
  google: { simulator: true }
  azure-eu: { url: "http://127.0.0.1:9" }     # nobody listens there
routes:
  - model: gpt-5.1-eu
    to: [{ upstream: azure-eu, model: gpt-5.1 }, { upstream: openai, model: gpt-5.1 }]
  - model: steady                                # the first response to a request is cut
    to:
      - { upstream: openai, model: "gpt-5.1,cut_after=6,first=1" }
      - { upstream: anthropic, model: claude-sonnet-4.5, prefill: true }
    resume: continue
  - { model: ["gpt-*", "text-embedding-*", house-model], to: openai }
  - { model: "claude-*", to: anthropic }
  - { model: "gemini-*", to: google }
models:
  gpt-5.1: { price: { input: 1.25, cached_input: 0.125, output: 10 } }
  "gpt-5.1,cut_after=6,first=1": { price: { input: 1.25, output: 10 } }
  gpt-5.1-eu: { price: { input: 1.25, cached_input: 0.125, output: 10 } }
  gpt-5-mini: { price: { input: 0.25, cached_input: 0.025, output: 2 } }
  claude-sonnet-4.5: { price: { input: 3, cached_input: 0.30, output: 15 } }
  gemini-3-pro: { price: { input: 2, output: 12 } }
groups:
  company: { limits: { requests_per_minute: 6000 } }
  helpdesk: { limits: { budget: { usd: 10, per: total } } }   # spent by a key that has left it
  science: { parent: company, models: ["gpt-*", "claude-*", "gemini-*", steady, house-model] }
keys:
  - name: web-app
    key: ${KEYS['web-app']}
    models: ["gpt-*", "claude-*"]
    owner: growth
    limits:
      requests_per_minute: 600
      tokens_per_minute: 400000
      concurrent: 20
      budget: { usd: 400, per: month }
  - name: batch-nightly
    key: ${KEYS['batch-nightly']}
    limits: { budget: { usd: 120, per: month } }
  - { name: research, key: ${KEYS.research}, group: science, owner: laboratory, note: evaluation of models }
  - { name: support-bot, key: ${KEYS['support-bot']}, limits: { requests_per_minute: 60 } }
ledger: { file: ledger.db }
`
}
