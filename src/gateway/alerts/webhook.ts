import type { Logger } from 'pino'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/message-of.ts'
import { signatureHeaders } from '../../base/secrets/webhook-signature.ts'
import type { WebhookConfig } from '../../config/types.ts'
import { PendingEvents, type AlertEvent } from './pending-events.ts'

export interface WebhookOptions {
  /** The webhook of the active configuration; null = none. */
  readonly config: () => WebhookConfig | null
  /** The file that keeps waiting events while the gateway restarts; null = a restart loses them. */
  readonly file: string | null
  readonly gateway: string
  readonly clock: Clock
  readonly log: Logger
}

const RESPONSE_TIMEOUT_MS = 10_000
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 5 * 60_000
/** Maximum attempts for one event. The last attempt is about 19 minutes after the first, or later if attempts time out. */
const MAX_ATTEMPTS = 12

/**
 * Sends events one at a time, and retries failed deliveries. A delivery that a restart interrupts is retried after the restart. Events are
 * signed by `signatureHeaders`.
 */
export class Webhook {
  readonly #options: WebhookOptions
  readonly #pending: PendingEvents
  readonly #abort = new AbortController()
  #isSending = false

  constructor(options: WebhookOptions) {
    this.#options = options
    this.#pending = new PendingEvents(options.file, options.log)
    if (this.#pending.first !== undefined) void this.#sendAll()
  }

  send(event: AlertEvent): void {
    if (this.#options.config() === null || this.#abort.signal.aborted) return
    this.#pending.add(event, this.#isSending)
    if (!this.#isSending) void this.#sendAll()
  }

  close(): void {
    this.#abort.abort()
    this.#pending.close()
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    for (let event = this.#pending.first; event !== undefined; event = this.#pending.first) {
      await this.#deliver(event)
      if (this.#abort.signal.aborted) return
      this.#pending.removeFirst()
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
      const line = { event: event.id, type: event.type, why: failure.why, attempt, dropped: this.#pending.dropped }
      if (!failure.retryable || attempt === MAX_ATTEMPTS) return log.error(line, 'an alert could not be sent to the webhook: check alerts.webhook')
      if (attempt === 1) log.warn(line, 'an alert could not be sent to the webhook: it is retried')
      await this.#pause(Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), MAX_RETRY_MS))
    }
  }

  /** @returns null = delivered */
  async #post({ url, headers, secret }: WebhookConfig, event: AlertEvent): Promise<{ readonly why: string, readonly retryable: boolean } | null> {
    const { gateway, clock } = this.#options
    const body = JSON.stringify({ ...event, gateway })
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', ...signatureHeaders(event.id, clock.wall(), body, secret) },
        body,
        redirect: 'manual',
        signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(RESPONSE_TIMEOUT_MS)]),
      })
      await response.body?.cancel()
      const { status, ok } = response
      return ok ? null : { why: `status ${status}`, retryable: status >= 500 || status === 429 || status === 408 }
    } catch (error) {
      return { why: messageOf((error as Error).cause ?? error), retryable: true }
    }
  }

  /** Resolves after `ms`, or earlier when the webhook is closed. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => resolve()
    const timer = this.#options.clock.setTimeout(end, ms)
    this.#abort.signal.addEventListener('abort', end)
    await promise
    timer.cancel()
    this.#abort.signal.removeEventListener('abort', end)
  }
}
