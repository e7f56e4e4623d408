import type { DatabaseSync } from 'node:sqlite'

/** A login. It may be an attempt to guess a password. */
export interface LoginAttempt {
  /** Name of the user; null = a login with a key. */
  readonly name: string | null
  readonly address: string
}

/** Number of failures without a delay, because people mistype. */
const FREE_FAILURES = 4
/** ms of the first delay. Each further failure doubles the delay. */
const FIRST_DELAY = 1_000
/** Maximum ms of a delay. For a name it is short, so that other people cannot lock out the owner of the name. */
const MAX_DELAY = { address: 15 * 60_000, name: 30_000 } as const
/** ms after which a failure is deleted. */
const FAILURE_RETENTION = 24 * 60 * 60_000
/** ms after a login for which the address counts as known for the name. */
const KNOWN_ADDRESS_RETENTION = 30 * 24 * 60 * 60_000
const MAX_ROWS = 20_000

/**
 * Each attempt counts as failed from its start, so that concurrent attempts do not avoid the delay. A successful login deletes the failure.
 */
export class LoginAttemptTable {
  readonly #db: DatabaseSync

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** @returns ms to wait before the next attempt; 0 = the attempt may begin, and is counted */
  begin(attempt: LoginAttempt, now: number): number {
    this.#deleteExpired(now)
    const subjects = this.#subjects(attempt, now)
    const wait = Math.max(...subjects.map(({ subject, longest }) => this.#wait(subject, longest, now)))
    if (wait > 0) return wait
    for (const { subject, longest } of subjects) this.#countFailure(subject, longest, now)
    return 0
  }

  succeeded({ name, address }: LoginAttempt, now: number): void {
    const forget = this.#db.prepare('DELETE FROM attempts WHERE subject = ?')
    forget.run(addressSubject(address))
    if (name === null) return
    forget.run(`name ${name}`)
    forget.run(ownerSubject(name, address))
    this.#db.prepare('INSERT OR REPLACE INTO attempts VALUES (?, 0, 0, ?)').run(knownSubject(name, address), now)
  }

  /**
   * The counters for an attempt. Guesses from other addresses do not delay the owner of a name. At an address at which the owner has logged
   * in, failures of the name are counted separately, because a login of another user at this address deletes the address's failures.
   */
  #subjects({ name, address }: LoginAttempt, now: number): { subject: string; longest: number }[] {
    const byAddress = { subject: addressSubject(address), longest: MAX_DELAY.address }
    if (name === null) return [byAddress]
    const subject = this.#isKnown(name, address, now) ? ownerSubject(name, address) : `name ${name}`
    return [byAddress, { subject, longest: MAX_DELAY.name }]
  }

  #isKnown(name: string, address: string, now: number): boolean {
    const row = this.#db.prepare('SELECT at FROM attempts WHERE subject = ?').get(knownSubject(name, address))
    return row !== undefined && Number(row['at']) > now - KNOWN_ADDRESS_RETENTION
  }

  #wait(subject: string, longest: number, now: number): number {
    const until = this.#db.prepare('SELECT until FROM attempts WHERE subject = ?').get(subject)?.['until']
    const wait = Number(until ?? 0) - now
    // A longer wait is impossible, unless the clock was set back.
    return wait > longest ? 0 : wait
  }

  #countFailure(subject: string, longest: number, now: number): void {
    const before = this.#db.prepare('SELECT failures FROM attempts WHERE subject = ?').get(subject)?.['failures']
    const failures = Number(before ?? 0) + 1
    const delay = failures <= FREE_FAILURES ? 0 : Math.min(longest, FIRST_DELAY * 2 ** (failures - FREE_FAILURES - 1))
    this.#db.prepare('INSERT OR REPLACE INTO attempts VALUES (?, ?, ?, ?)').run(subject, failures, now + delay, now)
  }

  #deleteExpired(now: number): void {
    this.#db.prepare("DELETE FROM attempts WHERE at < ? AND subject NOT LIKE 'known %'").run(now - FAILURE_RETENTION)
    this.#db.prepare('DELETE FROM attempts WHERE at < ?').run(now - KNOWN_ADDRESS_RETENTION)
    this.#db.prepare(`DELETE FROM attempts WHERE subject IN
      (SELECT subject FROM attempts ORDER BY at DESC LIMIT -1 OFFSET ?)`).run(MAX_ROWS)
  }
}

/** Counter of a name at an address at which the owner of the name has logged in. */
function ownerSubject(name: string, address: string): string {
  return `owner ${addressSubject(address)} ${name}`
}

function knownSubject(name: string, address: string): string {
  return `known ${addressSubject(address)} ${name}`
}

/** Counter of an address. An IPv6 subscriber has a whole /64 (RFC 6177). */
function addressSubject(address: string): string {
  if (!address.includes(':') || address.includes('.')) return `address ${address}`
  const [head = '', tail = ''] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = address.includes('::') && tail !== '' ? tail.split(':') : []
  const lack = address.includes('::') ? Math.max(0, 8 - groups.length - rest.length) : 0
  const zeros = Array<string>(lack).fill('0')
  return `address ${[...groups, ...zeros, ...rest].slice(0, 4).join(':')}::/64`
}
