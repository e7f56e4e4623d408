import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bodyOf, scriptOf, scriptOfScenario } from './cases.ts'
import type { Case, Scenario } from './cases.ts'
import { converse, post, untilSettled } from './client.ts'
import type { Received } from './client.ts'
import { encodedAs } from './codings.ts'
import { parsedOr } from './figures.ts'
import { GatewayProcess, MAX_AT_REST } from './gateway.ts'
import { LedgerCheck } from './ledger-check.ts'
import { faultsOf } from './oracles.ts'
import type { Outcome } from './oracles.ts'
import { REQUESTS } from './requests.ts'
import { OPEN_KEY, TARGETS, budgetKey } from './targets.ts'
import { render, renderItems } from './template.ts'
import type { Template } from './template.ts'
import { Upstreams } from './upstream.ts'
import type { Script } from './upstream.ts'

/** Milliseconds of CPU time that the event loop may take for one turn: where this machine is slow, as often as a control takes. */
const MAX_TURN_MS = 250
const TURN_IN_CONTROLS = 25
/** A turn that is too long is one if it is so each time: garbage of requests before may be collected in it. */
const REPEATS = 3
/** Times the bound, from which on no other garbage can be the reason. */
const CERTAIN = 4
/** Cases after which a new gateway begins, with a new ledger. */
const CASES_OF_GATEWAY = 20_000

/** A gateway and its upstreams, through which cases run one after the other. */
export class Fuzzer {
  /** Cases that ran. */
  cases = 0
  /** What happened in the last one. */
  last: Outcome | null = null
  readonly #upstreams: Upstreams
  #gateway: GatewayProcess | null = null
  #ledger: LedgerCheck | null = null
  #directory = ''
  #maxTurnMs = MAX_TURN_MS
  #ofGateway = 0

  private constructor(upstreams: Upstreams) {
    this.#upstreams = upstreams
  }

  static async start(): Promise<Fuzzer> {
    return new Fuzzer(await Upstreams.start())
  }

  async close(): Promise<void> {
    await this.stopGateway()
    this.#upstreams.close()
  }

  /** Runs a case. @returns it as a scenario, with what is wrong */
  async run(choices: Case): Promise<{ readonly scenario: Scenario, readonly faults: readonly string[] }> {
    const { request, target, encoding, budget } = choices
    // One of many tens of megabytes is enough.
    const burst = choices.size === 'huge' ? 1 : choices.burst
    const scenario = { request, target, encoding, budget, burst, body: bodyOf(choices) }
    const faults = await this.#confirmed(scenario, scriptOf(choices))
    return { scenario: { ...scenario, responses: this.#upstreams.exchanges.map(({ response }) => response) }, faults }
  }

  /** Runs a scenario that was kept. @returns what is wrong */
  replay(scenario: Scenario): Promise<string[]> {
    return this.#confirmed(scenario, scriptOfScenario(scenario))
  }

  /** @returns what is wrong with the ledger of all that ran, and with the memory that is left */
  async settle(): Promise<string[]> {
    const gateway = this.#gateway
    if (gateway === null || !gateway.isAlive || this.#ledger === null) return []
    const faults = await this.#ledger.faults()
    const { heap, external } = await gateway.report('collect') ?? { heap: 0, external: 0 }
    if (heap + external > MAX_AT_REST) faults.push(`grows: ${Math.round((heap + external) / 2 ** 20)} MB in use when nothing runs`)
    if (this.#ofGateway > CASES_OF_GATEWAY) await this.stopGateway()
    return faults
  }

  /** The next case starts a new one, with a new ledger. */
  async stopGateway(): Promise<void> {
    this.#ledger?.close()
    this.#ledger = null
    await this.#gateway?.stop()
    this.#gateway = null
    if (this.#directory !== '') rmSync(this.#directory, { recursive: true, force: true })
  }

  async #confirmed(scenario: Omit<Scenario, 'responses'>, script: Script): Promise<string[]> {
    let faults: string[] = []
    for (let n = 0; n < REPEATS; n++) {
      this.last = await this.#send(scenario, script)
      faults = faultsOf(this.last, this.#maxTurnMs)
      if (!faults.some(fault => fault.startsWith('blocks')) || (this.last.report?.turnMs ?? 0) > this.#maxTurnMs * CERTAIN) break
    }
    return faults
  }

  async #send({ request, target, body, encoding, budget, burst }: Omit<Scenario, 'responses'>, script: Script): Promise<Outcome> {
    const seed = REQUESTS[request]
    const { model } = TARGETS[target] ?? {}
    if (seed === undefined || model === undefined) throw new Error(`no request ${request}, or no target ${target}`)
    const gateway = await this.#ready()
    this.cases++
    this.#ofGateway++
    this.#upstreams.exchanges = []
    this.#upstreams.script = script
    const withModel = (text: string): string => text.replaceAll('$model', model)
    // What a session may cost is not known when it begins.
    const key = budget === null || seed.form === 'socket' ? OPEN_KEY : budgetKey(budget)
    const path = withModel(seed.path)
    let sent: () => Promise<Received>
    let size = 0
    if (seed.form === 'socket') {
      const messages = renderItems(body).map(withModel)
      sent = () => converse(gateway.url, path, { authorization: `Bearer ${key}` }, messages)
    } else {
      const plain = seed.form === 'form' ? formOf(body, withModel) : Buffer.from(withModel(render(body)))
      size = plain.length
      const bytes = encodedAs(encoding, plain)
      const headers = {
        'x-api-key': key, 'anthropic-version': '2023-06-01', 'content-type': seed.form === 'form' ? `multipart/form-data; boundary=${BOUNDARY}` : 'application/json', ...encoding !== '' && { 'content-encoding': encoding },
      }
      sent = () => post(gateway.url, path, headers, bytes)
    }
    const received = await Promise.all(Array.from({ length: burst }, () => sent()))
    this.#ledger?.expect(received)
    await untilSettled(gateway.url)
    const report = await gateway.report()
    return {
      seed, path, target, size, burst, received, report, exchanges: this.#upstreams.exchanges, errors: gateway.takeErrors(), lastWords: gateway.lastWords,
    }
  }

  async #ready(): Promise<GatewayProcess> {
    if (this.#gateway?.isAlive) return this.#gateway
    await this.stopGateway()
    this.#directory = mkdtempSync(join(tmpdir(), 'gateway-fuzz-'))
    this.#gateway = await GatewayProcess.start(this.#directory, this.#upstreams.url)
    this.#ledger = new LedgerCheck(this.#gateway.ledger)
    this.#ofGateway = 0
    this.#maxTurnMs = Math.max(MAX_TURN_MS, TURN_IN_CONTROLS * (await this.#gateway.control() ?? 0))
    return this.#gateway
  }
}

const BOUNDARY = 'boundary-of-a-form'

/** @param body a list of parts; what is no part goes in as its JSON */
function formOf(body: Template, withModel: (text: string) => string): Buffer {
  const parts = renderItems(body).map(text => {
    const part = parsedOr(null, Buffer.from(withModel(text))) as Record<string, unknown> | null
    const file = typeof part?.['filename'] === 'string' ? `; filename="${part['filename']}"` : ''
    const type = typeof part?.['type'] === 'string' ? `content-type: ${part['type']}\r\n` : ''
    return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${textOr('x', part?.['name'])}"${file}\r\n${type}\r\n${textOr(text, part?.['value'])}\r\n`
  })
  return Buffer.from(`${parts.join('')}--${BOUNDARY}--\r\n`)
}

function textOr(other: string, value: unknown): string {
  return typeof value === 'string' ? value : other
}
