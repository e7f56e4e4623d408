import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import type { Clock, Timer } from '../base/clock.ts'
import { messageOf } from '../base/message-of.ts'
import type { WebhookConfig } from '../config/types.ts'

/** Something that an operator should hear of. */
export interface AlertEvent {
  /** Unique; the same at each delivery. */
  readonly id: string
  readonly type:
    | 'circuit.opened' | 'circuit.closed' | 'budget.reached' | 'ledger.failed' | 'ledger.recovered' | 'reload.rejected'
    | 'certificate.expiring'
  /** ISO 8601 */
  readonly at: string
  readonly severity: 'error' | 'warning' | 'info'
  /** The upstream or key that it is about; null = none. */
  readonly subject: string | null
  readonly message: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface WebhookOptions {
  /** Of the configuration in force; null = there is no webhook. */
  readonly config: () => WebhookConfig | null
  /** The name of the gateway. */
  readonly gateway: string
  readonly clock: Clock
  readonly log: Logger
}

/** Events that wait; of more, the oldest are dropped. */
const MAX_WAITING = 1_000
/** ms for a response. */
const TIMEOUT_MS = 10_000
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 5 * 60_000
/** Deliveries of one event: the last comes some 25 minutes after the first. */
const MAX_ATTEMPTS = 12

/**
 * Sends events to the webhook, one after the other, and again where that fails. They wait in memory: a restart forgets them.
 *
 * Signed as in https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export class Webhook {
  readonly #options: WebhookOptions
  readonly #waiting: AlertEvent[] = []
  readonly #abort = new AbortController()
  #isSending = false
  #timer: Timer | null = null
  #dropped = 0

  constructor(options: WebhookOptions) {
    this.#options = options
  }

  send(event: AlertEvent): void {
    if (this.#options.config() === null || this.#abort.signal.aborted) return
    this.#waiting.push(event)
    if (this.#waiting.length > MAX_WAITING) {
      // The first may be on its way.
      this.#waiting.splice(this.#isSending ? 1 : 0, 1)
      this.#dropped++
    }
    if (!this.#isSending) void this.#sendAll()
  }

  close(): void {
    this.#abort.abort()
    this.#timer?.cancel()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    for (let event = this.#waiting[0]; event !== undefined; event = this.#waiting[0]) {
      await this.#deliver(event)
      if (this.#abort.signal.aborted) return
      this.#waiting.shift()
    }
    this.#isSending = false
  }

  async #deliver(event: AlertEvent): Promise<void> {
    const { log } = this.#options
    for (let attempt = 1; ; attempt++) {
      const config = this.#options.config()
      if (config === null || this.#abort.signal.aborted) return
      const failure = await this.#post(config, event)
      if (failure === null || this.#abort.signal.aborted) return
      const line = { event: event.id, type: event.type, why: failure.why, attempt, dropped: this.#dropped }
      if (!failure.retryable || attempt === MAX_ATTEMPTS) return log.error(line, 'an alert could not be sent to the webhook')
      if (attempt === 1) log.warn(line, 'an alert could not be sent to the webhook: it is tried again')
      await this.#pause(Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), MAX_RETRY_MS))
    }
  }

  /** @returns null = it was delivered */
  async #post({ url, headers, secret }: WebhookConfig, event: AlertEvent): Promise<{ readonly why: string, readonly retryable: boolean } | null> {
    const { gateway, clock } = this.#options
    const body = JSON.stringify({ ...event, gateway })
    const timestamp = String(Math.floor(clock.wall() / 1_000))
    const signature = secret === null ? {} : { 'webhook-signature': `v1,${sign(secret, `${event.id}.${timestamp}.${body}`)}` }
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'webhook-id': event.id, 'webhook-timestamp': timestamp, ...signature },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      })
      await response.body?.cancel()
      const { status, ok } = response
      return ok ? null : { why: `status ${status}`, retryable: status >= 500 || status === 429 || status === 408 }
    } catch (error) {
      const { cause } = error as { cause?: unknown }
      return { why: cause === undefined ? messageOf(error) : messageOf(cause), retryable: true }
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      this.#timer = this.#options.clock.setTimeout(resolve, ms)
      this.#abort.signal.addEventListener('abort', () => resolve(), { once: true })
    })
  }
}

/** A secret that begins with whsec_ is base64; others are taken as they are. */
function sign(secret: string, content: string): string {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
  return createHmac('sha256', key).update(content).digest('base64')
}
