import type { Key } from '../config/key-types.ts'
import type { Actor, AuditEvent, StoredAuditEvent } from './audit.ts'
import type { BlockRecord } from './key-reader.ts'
import type { CallerQuota, KeyEdit, KeyRecord, KeySummary, NewSecret } from './key-record.ts'

/** A file blocks; a database returns a promise. */
type Awaitable<T> = T | Promise<T>

/** Changes keys in the file of one gateway, or those of several gateways in PostgreSQL. Times are ms since 1970. */
export interface KeyWriter extends Disposable {
  /**
   * @param quota of a key that a caller makes; null = no bound
   * @throws {StoreError} `taken` = a live key has this name; `full`, `often` = the quota is used up
   */
  create(key: Key, now: number, by: Actor, quota?: CallerQuota | null): Awaitable<void>
  /**
   * @param to absent members stay unchanged, also when another process changes them in between
   * @param detail the changes, for the audit list
   */
  change(key: KeySummary, to: KeyEdit, detail: string, now: number, by: Actor): Awaitable<void>
  /** @throws {StoreError} `missing` = it was revoked in between */
  rotate(key: KeySummary, to: NewSecret, now: number, by: Actor): Awaitable<void>
  /** The live key with a name, a secret's digest or an id; if there is none, the key that was revoked last. */
  find(by: 'name' | 'digest' | 'id', value: string | Buffer | number): Awaitable<KeySummary | null>
  revoke(key: KeySummary, now: number, by: Actor): Awaitable<void>
  /** @returns false = it was blocked already */
  block(key: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Awaitable<boolean>
  /** @returns false = it was not blocked */
  unblock(key: Pick<Key, 'name' | 'digest'>, now: number, by: Actor): Awaitable<boolean>
  /** All keys, revoked ones included, and the blocked digests. */
  list(): Awaitable<{ keys: KeyRecord[], blocks: BlockRecord[] }>
  recordAuditEvent(entry: AuditEvent): Awaitable<void>
  /** Events, the newest first; `before` is the id of an event, or null. */
  audit(before: number | null, count: number): Awaitable<StoredAuditEvent[]>
  /** Waits at most `patience` ms until every running gateway has applied what was written. @returns false = not in time */
  waitUntilPublished(patience: number): Awaitable<boolean>
  close(): void
}
