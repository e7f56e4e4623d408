import type { Key } from '../config/key-types.ts'
import type { Actor, AuditEvent, StoredAuditEvent } from './audit.ts'
import type { BlockRecord } from './key-reader.ts'
import type { KeyEdit, KeyRecord, KeySummary, NewSecret } from './key-record.ts'

/** A file blocks while it works; a database is waited for. */
type Awaitable<T> = T | Promise<T>

/** Changes keys: those in the file of one gateway, or those of several gateways in PostgreSQL. Times are ms since 1970. */
export interface KeyWriter extends Disposable {
  /** @throws {KeyStoreError} `taken` where a live key has the name */
  create(key: Key, now: number, by: Actor): Awaitable<void>
  /**
   * @param to absent members stay as they are, also if somebody else changes them meanwhile
   * @param detail what is other now, for the audit list
   */
  change(key: KeySummary, to: KeyEdit, detail: string, now: number, by: Actor): Awaitable<void>
  /** @throws {KeyStoreError} `missing` where it was revoked meanwhile */
  rotate(key: KeySummary, to: NewSecret, now: number, by: Actor): Awaitable<void>
  /** The live key of a name, the digest of one of its secrets or an id, or else the one that was revoked last. */
  find(by: 'name' | 'digest' | 'id', value: string | Buffer | number): Awaitable<KeySummary | null>
  revoke(key: KeySummary, now: number, by: Actor): Awaitable<void>
  /** @returns false where it is blocked already */
  block(key: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Awaitable<boolean>
  /** @returns false where it is not blocked */
  unblock(key: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Awaitable<boolean>
  /** All keys, revoked ones included, and the digests that are blocked. */
  list(): Awaitable<{ keys: KeyRecord[], blocks: BlockRecord[] }>
  /** Something that changes no key. */
  recordAuditEvent(entry: AuditEvent): Awaitable<void>
  /** The newest first; `before` is the id of an entry, and null for the newest of all. */
  audit(before: number | null, count: number): Awaitable<StoredAuditEvent[]>
  /**
   * Waits until every running gateway has applied what was written.
   * @param patience ms
   * @returns false where the time was up first
   */
  waitUntilPublished(patience: number): Awaitable<boolean>
  close(): void
}
