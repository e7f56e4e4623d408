import { watch, type FSWatcher } from 'node:fs'
import type { Clock, Timer } from '../base/clock.ts'
import { fileIdentity } from '../base/files/file-exists.ts'
import { messageOf } from '../base/message-of.ts'
import type { Key } from '../config/key-types.ts'
import { KeyFile } from './key-file.ts'
import { KeyReader, type BlockRecord } from './key-reader.ts'
import { readRecord, type KeyRow } from './key-record.ts'
import { StoreError } from '../base/files/store-error.ts'

/** Changes of live keys. A changed key is both added and removed. */
export interface KeyChange {
  readonly added: readonly Key[]
  readonly removed: readonly Key[]
  /** Digests of keys, configured or stored. */
  readonly blocked: readonly Buffer[]
  readonly unblocked: readonly Buffer[]
}

export interface KeyStoreOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'setTimeout'>
  /** The store or a key in it cannot be read; the known keys stay. Called once for each problem. */
  readonly onFailure: (why: string) => void
  readonly onRecovered: () => void
}

/** ms between two checks of the file, if its watch reports nothing earlier. */
const POLL_INTERVAL_MS = 1_000
const START_TIMEOUT_MS = 1_000

/** The open file: one connection holds the active state, the other reads the next one. */
interface OpenReaders { readonly identity: string, current: KeyReader, next: KeyReader }

interface KnownKey {
  readonly key: Key
  /** All columns of the row that define the key. */
  readonly text: string
}

/**
 * The live keys of a store, in memory. No request waits for the file: changes are read when its watch reports them, and
 * every second in any case.
 *
 * A writer waits for the read transaction on the active state (KeyFile.waitUntilPublished), which ends only when the newer
 * state is active. So after a command returns, every request sees its change.
 */
export class KeyStore {
  readonly #options: KeyStoreOptions
  readonly #knownKeys = new Map<number, KnownKey>()
  /** By the digest in hexadecimal. */
  readonly #blocked = new Map<string, Buffer>()
  #onChange: (change: KeyChange) => void = () => {}
  #version = 0
  #openReaders: OpenReaders | null = null
  #watcher: FSWatcher | null = null
  #timer: Timer | null = null
  /** The last reported problem; null = none. */
  #failure: string | null = null

  /** Creates the store if it is missing. An unreadable store is reported, and has no keys. */
  constructor(options: KeyStoreOptions) {
    this.#options = options
    this.#attempt(() => {
      new KeyFile(options.file, START_TIMEOUT_MS).close()
      this.#read()
    })
  }

  /** The live keys, without those of callers. An unchanged key keeps its object. */
  keys(): Key[] {
    return this.#keysWhere(({ caller }) => caller === undefined)
  }

  /** The live keys that callers have made. */
  callerKeys(): Key[] {
    return this.#keysWhere(({ caller }) => caller !== undefined)
  }

  #keysWhere(matches: (key: Key) => boolean): Key[] {
    return Array.from(this.#knownKeys.values(), ({ key }) => key).filter(matches)
  }

  blocked(): Buffer[] {
    return [...this.#blocked.values()]
  }

  /** Why the store cannot be read; null = it can. */
  get failure(): string | null {
    return this.#failure
  }

  /** Calls `onChange` at each change from now on. */
  subscribe(onChange: (change: KeyChange) => void): void {
    this.#onChange = onChange
    this.#poll()
  }

  /** Reads changes now: they are active when it returns. */
  refresh(): void {
    this.#poll()
  }

  close(): void {
    this.#timer?.cancel()
    this.#watcher?.close()
    this.#openReaders?.current.close()
    this.#openReaders?.next.close()
    this.#openReaders = null
  }

  readonly #poll = (): void => {
    this.#timer?.cancel()
    this.#attempt(() => this.#read())
    this.#timer = this.#options.clock.setTimeout(this.#poll, POLL_INTERVAL_MS)
  }

  #attempt(read: () => void): void {
    try {
      read()
    } catch (error) {
      const message = messageOf(error)
      if (message !== this.#failure) this.#options.onFailure(message)
      this.#failure = message
      return
    }
    if (this.#failure !== null) this.#options.onRecovered()
    this.#failure = null
  }

  #read(): void {
    const { file } = this.#options
    const identity = fileIdentity(file)
    if (this.#openReaders?.identity === identity) return this.#readChanges(this.#openReaders, false)
    // Another file replaced the earlier one: read all of it.
    const opened = openReaders(file, identity)
    try {
      this.#readChanges(opened, true)
    } catch (error) {
      opened.current.close()
      opened.next.close()
      throw error
    }
    this.#openReaders?.current.close()
    this.#openReaders?.next.close()
    this.#openReaders = opened
    this.#watch()
  }

  /** Moves to the current state; if that fails, the earlier one is still held. */
  #readChanges(open: OpenReaders, complete: boolean): void {
    const { current: held, next } = open
    try {
      const version = next.begin()
      const isOlder = version < this.#version
      if (complete || isOlder) this.#apply(next.rowsSince(0), next.blocksSince(0), true)
      else if (version > this.#version) this.#apply(next.rowsSince(this.#version), next.blocksSince(this.#version), false)
      this.#version = version
    } catch (error) {
      next.end()
      throw error
    }
    open.current = next
    open.next = held
    held.end()
  }

  #apply(rows: Iterable<KeyRow>, blocks: readonly BlockRecord[], complete: boolean): void {
    // Read all rows first: a read that fails midway changes nothing.
    const all = [...rows]
    const added: Key[] = []
    const removed: Key[] = []
    const forget = (id: number): void => {
      const known = this.#knownKeys.get(id)
      if (known !== undefined) removed.push(known.key)
      this.#knownKeys.delete(id)
    }
    for (const row of all) {
      const id = Number(row['id'])
      if (row['revoked_at'] !== null) {
        forget(id)
        continue
      }
      const text = rowText(row)
      if (this.#knownKeys.get(id)?.text === text) continue
      const key = this.#readKey(row)
      if (key === null) continue
      forget(id)
      this.#knownKeys.set(id, { key, text })
      added.push(key)
    }
    if (complete) {
      const there = new Set(all.map(row => Number(row['id'])))
      for (const id of this.#knownKeys.keys()) if (!there.has(id)) forget(id)
    }
    const { blocked, unblocked } = this.#applyBlocks(blocks, complete)
    if (added.length + removed.length + blocked.length + unblocked.length === 0) return
    this.#onChange({ added, removed, blocked, unblocked })
  }

  #applyBlocks(blocks: readonly BlockRecord[], complete: boolean): Pick<KeyChange, 'blocked' | 'unblocked'> {
    const shut = new Map(blocks.filter(({ blockedAt }) => blockedAt !== null).map(block => [digestHex(block), block.digest]))
    const blocked = [...shut].filter(([at]) => !this.#blocked.has(at))
    const changed = complete ? [...this.#blocked.keys()] : blocks.map(digestHex)
    const unblocked = changed.filter(at => this.#blocked.has(at) && !shut.has(at))
    const opened = unblocked.map(at => this.#blocked.get(at) as Buffer)
    for (const at of unblocked) this.#blocked.delete(at)
    for (const [at, digest] of blocked) this.#blocked.set(at, digest)
    return { blocked: blocked.map(([, digest]) => digest), unblocked: opened }
  }

  /** null = the row is unreadable; other rows are used. */
  #readKey(row: KeyRow): Key | null {
    try {
      return readRecord(row).key
    } catch (error) {
      this.#options.onFailure(messageOf(error))
      return null
    }
  }

  #watch(): void {
    this.#watcher?.close()
    try {
      this.#watcher = watch(this.#options.file, { persistent: false }, this.#poll)
      // Without a watch, the check every second remains.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // The system has no more watches.
      this.#watcher = null
    }
  }
}

function openReaders(file: string, identity: string | null): OpenReaders {
  if (identity === null) throw new StoreError('missing', 'the file does not exist any more')
  const held = new KeyReader(file, 0)
  try {
    return { identity, current: held, next: new KeyReader(file, 0) }
  } catch (error) {
    held.close()
    throw error
  }
}

function digestHex({ digest }: BlockRecord): string {
  return digest.toString('hex')
}

function rowText({ digest, change: _change, id: _id, created_at: _created, ...rest }: KeyRow): string {
  return JSON.stringify([Buffer.from(digest as Uint8Array).toString('hex'), rest])
}
