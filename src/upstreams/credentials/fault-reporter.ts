import type { Logger } from 'pino'
import { GatewayError, causeOf, credentialUnavailable } from '../../base/errors.ts'

/** Logs when the source of a credential begins to fail, fails for a new reason, or works again. */
export class FaultReporter {
  readonly #log: Logger
  readonly #upstream: string
  /** null = the source works. */
  #reason: string | null = null

  constructor(log: Logger, upstream: string) {
    this.#log = log
    this.#upstream = upstream
  }

  /** @returns the error for requests that need the credential. The error contains no text of the source */
  failed(thrown: unknown): GatewayError {
    // Do not report a library's error, because its message may contain the secret.
    const error = thrown instanceof GatewayError ? thrown : credentialUnavailable('the source of the credential failed')
    const reason = causeOf(error) ?? error.message
    if (reason !== this.#reason) this.#log.error({ upstream: this.#upstream, reason }, 'credentials: %s', reason)
    this.#reason = reason
    return error
  }

  /** Why the source fails; null = the source works. */
  get reason(): string | null {
    return this.#reason
  }

  recovered(): void {
    if (this.#reason !== null) this.#log.info({ upstream: this.#upstream }, 'credentials: available again')
    this.#reason = null
  }
}
