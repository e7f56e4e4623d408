import { closeSync, openSync, readSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { credentialUnavailable, type GatewayError } from '../../base/errors.ts'
import { FileWatch } from '../../base/files/file-watch.ts'
import { secretText } from '../../base/secrets/secret-text.ts'
import type { FileAuth } from '../../config/auth-types.ts'
import { UNAUTHORIZED, headerAuthorization, type Authorization, type Credential } from './credential.ts'
import { CONSTANT, type CredentialState } from './credential-state.ts'
import type { FaultReporter } from './fault-reporter.ts'

const MAX_FILE_BYTES = 64 * 1024

/** A credential in a file. The file is read again when it changes. If it cannot be read then, the old secret stays in use. */
export class FileCredential implements Credential {
  readonly refusalStatuses = UNAUTHORIZED
  readonly #auth: FileAuth
  readonly #clock: Clock
  readonly #reporter: FaultReporter
  readonly #watch: FileWatch
  #secret: string | null = null
  /** null = the file was never read successfully. */
  #authorization: Authorization | null = null
  #fault: GatewayError | null = null
  /** When the secret was last read, ms since 1970; null = never. */
  #readAt: number | null = null

  constructor(auth: FileAuth, { clock, reporter }: { readonly clock: Clock, readonly reporter: FaultReporter }) {
    this.#auth = auth
    this.#clock = clock
    this.#reporter = reporter
    this.#watch = new FileWatch([auth.file], () => this.#read())
    this.#read()
  }

  authorize(): Authorization {
    if (this.#authorization === null) throw this.#fault ?? credentialUnavailable('the file was not read')
    return this.#authorization
  }

  recordRefusal(refused: readonly Authorization[]): boolean {
    if (refused.length > 1) return false
    this.#read()
    return this.#authorization !== refused[0]
  }

  states(): readonly CredentialState[] {
    return [{ ...CONSTANT, fetchedAt: this.#readAt, fault: this.#reporter.reason }]
  }

  close(): void {
    this.#watch.close()
  }

  #read(): void {
    try {
      const secret = readSecret(this.#auth.file)
      if (secret !== this.#secret) {
        this.#authorization = headerAuthorization(this.#auth.headers[0], this.#auth.prefix, secret)
        this.#secret = secret
        this.#readAt = this.#clock.wall()
      }
      this.#fault = null
      this.#reporter.recovered()
    } catch (error) {
      this.#fault = this.#reporter.failed(error)
    }
  }
}

/** @throws GatewayError credential_unavailable */
export function readSecret(file: string): string {
  const buffer = Buffer.alloc(MAX_FILE_BYTES + 1)
  let size: number
  try {
    const descriptor = openSync(file, 'r')
    try {
      size = readSync(descriptor, buffer)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw credentialUnavailable(`the file cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  if (size > MAX_FILE_BYTES) throw credentialUnavailable(`the file is larger than ${MAX_FILE_BYTES / 1024} kB`)
  return secretText(buffer.subarray(0, size))
}
