import type { Clock, Timer } from '../../base/clock.ts'
import { candidateOf, type CandidateId } from '../../routing/candidate.ts'
import type { CircuitLog } from '../../routing/circuit-log.ts'
import type { Health } from '../../routing/health.ts'

export interface CircuitHintsOptions {
  /** The name of this gateway that other gateways show. */
  readonly instance: string
  readonly process: string
  readonly clock: Pick<Clock, 'setTimeout'>
  readonly health: Health
  readonly circuits: CircuitLog
  readonly knows: (upstream: string) => boolean
  /** Runs HINTS_SCRIPT. The promise rejects if no reply arrives in time. */
  readonly run: (keys: readonly string[], argument: string) => Promise<unknown>
}

/** Milliseconds between two exchanges: a gateway without traffic learns of an outage within this time. */
const INTERVAL_MS = 1_000
const KEY = 'gateway:circuits'
const MAX_CIRCUITS = 200

/**
 * Stores the open circuits of a process, each with its remaining ms, and returns the open circuits of other processes. Deletes expired
 * reports. Uses only the server's clock, so that differences between the gateways' clocks do not matter.
 */
export const HINTS_SCRIPT = `
local A = cjson.decode(ARGV[1])
local T = redis.call('TIME')
local now = tonumber(T[1]) * 1000 + math.floor(tonumber(T[2]) / 1000)
local found = {}
local raw = redis.call('HGETALL', KEYS[1])
for i = 1, #raw, 2 do
  if raw[i] ~= A.process then
    local report = cjson.decode(raw[i + 1])
    local isOver = true
    for _, circuit in ipairs(report.circuits) do
      local left = report.at + circuit[2] - now
      if left > 0 then
        isOver = false
        found[#found + 1] = { circuit[1], left, report.instance }
      end
    end
    if isOver then redis.call('HDEL', KEYS[1], raw[i]) end
  end
end
if #A.circuits > 0 then
  A.at = now
  redis.call('HSET', KEYS[1], A.process, cjson.encode(A))
  redis.call('PEXPIRE', KEYS[1], 120000)
else
  redis.call('HDEL', KEYS[1], A.process)
end
return found
`

/**
 * Exchanges open circuits with other gateways, so that a gateway without traffic learns of an outage before a client's request fails.
 * Reports only circuits that failures at this gateway opened, so that gateways do not prolong a hint by repeating it.
 */
export class CircuitHints {
  readonly #options: CircuitHintsOptions
  #timer: Timer | null = null
  #isRunning = false
  #isClosed = false

  constructor(options: CircuitHintsOptions) {
    this.#options = options
    options.circuits.subscribe(() => void this.#exchange())
    void this.#exchange()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  async #exchange(): Promise<void> {
    if (this.#isRunning || this.#isClosed) return
    this.#isRunning = true
    this.#timer?.cancel()
    // Ignore a failure: while Valkey is unreachable, the gateway knows only its own circuits.
    await this.#report().catch(() => undefined)
    this.#isRunning = false
    if (!this.#isClosed) this.#timer = this.#options.clock.setTimeout(() => void this.#exchange(), INTERVAL_MS)
  }

  async #report(): Promise<void> {
    const { instance, process, health, knows, run } = this.#options
    const circuits = health.conditions()
      .filter(([, { circuit, opensIn, isHint }]) => circuit === 'open' && !isHint && opensIn > 0 && opensIn < Infinity)
      .slice(0, MAX_CIRCUITS).map(([id, { opensIn }]) => [id, Math.ceil(opensIn)])
    const found = await run([KEY], JSON.stringify({ instance, process, circuits })) as [CandidateId, number, string][]
    for (const [id, ms, from] of found) if (knows(candidateOf(id)[0])) health.hint(id, ms, from)
  }
}
