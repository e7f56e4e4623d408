import { hash } from 'node:crypto'
import { hasExpired } from '../../auth/keyring.ts'
import { DEFAULT_COST, verifyPassword, parsePasswordHash, type PasswordHash } from '../../base/secrets/password.ts'
import type { Gateway } from '../../pipeline/parts/gateway.ts'
import type { Login } from '../api/session.ts'
import { ConsoleProblem } from '../http/console-problem.ts'
import type { VerifiedLogin } from './sessions.ts'
import type { ConsoleStoreClient } from '../store/console-store-client.ts'

/** Limit for scrypt: each run takes about 32 MB, and a thread of node's pool, which other work needs too. */
const MAX_CONCURRENT_LOGINS = 2
const MAX_QUEUED_LOGINS = 16

export class LoginVerifier {
  readonly #store: ConsoleStoreClient
  readonly #queue: (() => void)[] = []
  #running = 0

  constructor(store: ConsoleStoreClient) {
    this.#store = store
  }

  /**
   * @param now ms since 1970
   * @returns null = wrong name, password or key; takes the same time as a valid login
   * @throws ConsoleProblem too_many
   */
  async verify(gateway: Gateway, login: Login, address: string, now: number): Promise<VerifiedLogin | null> {
    const attempt = { name: 'name' in login ? login.name : null, address }
    const wait = await this.#store.call('beginAttempt', attempt, now)
    if (wait > 0) throw tooManyAttempts(Math.ceil(wait / 1_000))
    const proof = 'key' in login ? verifyKey(gateway, login.key) : await this.#verifyPassword(gateway, login)
    if (proof !== null) await this.#store.call('attemptSucceeded', attempt, now)
    return proof
  }

  async #verifyPassword(gateway: Gateway, { name, password }: { name: string; password: string }): Promise<VerifiedLogin | null> {
    const users = gateway.config.console?.users ?? []
    const user = users.find(user => user.name === name)
    // For an unknown name, verify the password of another user, so that the time is the same.
    const kept = user ?? users[hash('sha256', name, 'buffer').readUInt32LE() % users.length]
    const right = await this.#withConcurrencyLimit(
      () => verifyPassword(password, kept ? parsePasswordHash(kept.password) : DUMMY_PASSWORD_HASH),
    )
    return user !== undefined && right ? { user } : null
  }

  async #withConcurrencyLimit(work: () => Promise<boolean>): Promise<boolean> {
    if (this.#running >= MAX_CONCURRENT_LOGINS) {
      if (this.#queue.length >= MAX_QUEUED_LOGINS) throw tooManyAttempts(1)
      await new Promise<void>(resolve => this.#queue.push(resolve))
    } else {
      this.#running++
    }
    try {
      return await work()
    } finally {
      const next = this.#queue.shift()
      if (next) next()
      else this.#running--
    }
  }
}

const DUMMY_PASSWORD_HASH: PasswordHash = { cost: DEFAULT_COST, salt: Buffer.alloc(16), hash: Buffer.alloc(32) }

function verifyKey({ keyring, clock }: Gateway, key: string): VerifiedLogin | null {
  const identity = keyring.find(key)
  return identity && !hasExpired(identity, clock) ? { key: identity, digest: hash('sha256', key, 'buffer') } : null
}

function tooManyAttempts(seconds: number): ConsoleProblem {
  const time = seconds === 1 ? '1 second'
    : seconds < 120 ? `${seconds} seconds`
    : `${Math.ceil(seconds / 60)} minutes`
  return new ConsoleProblem('too_many', `Too many attempts. Try again in ${time}.`, { retryAfter: seconds })
}
