import { hash } from 'node:crypto'
import { COST, isPassword, parsePasswordHash } from '../base/password.ts'
import type { PasswordHash } from '../base/password.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Login } from './api/session.ts'
import { ConsoleProblem } from './problem.ts'
import type { Proof } from './sessions.ts'
import type { DeskLink } from './store/console-store-client.ts'

/** scrypt runs at once, each with some 32 MB and a thread of the pool that others need too. */
const AT_ONCE = 2
/** Logins that wait for their turn. */
const WAITING = 16

/** Finds out whether somebody is who they say. */
export class Logins {
  readonly #desk: DeskLink
  readonly #turns: (() => void)[] = []
  #running = 0

  constructor(desk: DeskLink) {
    this.#desk = desk
  }

  /**
   * @param address of the client
   * @param now ms since 1970
   * @returns null for a wrong name, password or key; that took as long as a right one
   * @throws ConsoleProblem too_many
   */
  async prove(gateway: Gateway, login: Login, address: string, now: number): Promise<Proof | null> {
    const attempt = { name: 'name' in login ? login.name : null, address }
    const wait = await this.#desk.ask('beginAttempt', attempt, now)
    if (wait > 0) throw tooMany(Math.ceil(wait / 1_000))
    const proof = 'key' in login ? byKey(gateway, login.key) : await this.#byPassword(gateway, login)
    if (proof !== null) await this.#desk.ask('attemptSucceeded', attempt, now)
    return proof
  }

  async #byPassword(
    gateway: Gateway, { name, password }: { name: string; password: string },
  ): Promise<Proof | null> {
    const users = gateway.config.console?.users ?? []
    const user = users.find(user => user.name === name)
    // Where there is nobody of the name, the time goes by all the same, as it would for one of the others.
    const kept = user ?? users[hash('sha256', name, 'buffer').readUInt32LE() % users.length]
    const right = await this.#inTurn(
      () => isPassword(password, kept ? parsePasswordHash(kept.password) : DUMMY),
    )
    return user !== undefined && right ? { user } : null
  }

  async #inTurn(work: () => Promise<boolean>): Promise<boolean> {
    if (this.#running >= AT_ONCE) {
      if (this.#turns.length >= WAITING) throw tooMany(1)
      await new Promise<void>(resolve => this.#turns.push(resolve))
    } else {
      this.#running++
    }
    try {
      return await work()
    } finally {
      const next = this.#turns.shift()
      if (next) next()
      else this.#running--
    }
  }
}

const DUMMY: PasswordHash = { cost: COST, salt: Buffer.alloc(16), hash: Buffer.alloc(32) }

function byKey({ keyring }: Gateway, key: string): Proof | null {
  const identity = keyring.find(key)
  return identity && { key: identity, digest: hash('sha256', key, 'buffer') }
}

function tooMany(seconds: number): ConsoleProblem {
  const time = seconds === 1 ? '1 second'
    : seconds < 120 ? `${seconds} seconds`
    : `${Math.ceil(seconds / 60)} minutes`
  return new ConsoleProblem('too_many', `too many attempts: try again in ${time}`, { retryAfter: seconds })
}
