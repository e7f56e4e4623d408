import { statSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import type { Clock, Timer } from '../base/clock.ts'
import type { Key } from '../config/types.ts'
import { messageOf } from '../base/message-of.ts'
import { KeyFile } from './key-file.ts'
import { KeyReader } from './key-reader.ts'
import type { Block } from './key-reader.ts'
import { readRecord } from './key-record.ts'
import type { KeyRow } from './key-record.ts'
import { KeyStoreError } from './key-schema.ts'

/** What became of the live keys. A key that was changed is both added and removed. */
export interface KeyChange {
  readonly added: readonly Key[]
  readonly removed: readonly Key[]
  /** Digests of keys that are shut out from now on, wherever they come from. */
  readonly blocked: readonly Buffer[]
  /** Those that are let in again. */
  readonly unblocked: readonly Buffer[]
}

export interface KeyStoreOptions {
  readonly file: string
  readonly clock: Pick<Clock, 'setTimeout'>
  /** The store, or a key in it, cannot be read. The keys known so far stay. Told once for each trouble. */
  readonly onTrouble: (why: string) => void
  /** The store can be read again. */
  readonly onRecovered: () => void
}

/** Milliseconds between two looks at the file, where nothing wakes the store before. */
const LOOK_EVERY = 1_000
/** Milliseconds that a start may wait for another process. */
const START_PATIENCE = 1_000

/** The file as it is open: one connection holds the moment that is in force, the other takes up the next. */
interface Open {
  readonly identity: string
  held: KeyReader
  next: KeyReader
}

interface Known {
  readonly key: Key
  /** All of the row that makes the key what it is. */
  readonly text: string
}

/**
 * The live keys of a store, in memory, as long as a gateway runs. No request ever
 * waits for the file: changes are read when the file's watch wakes the store, and
 * every second in any case.
 *
 * The read transaction on the state in force is what the writer waits for
 * (KeyFile.published): it ends only after the newer state is in force. Thus a
 * command that has returned holds for every request from there on.
 */
export class KeyStore {
  readonly #options: KeyStoreOptions
  readonly #known = new Map<number, Known>()
  /** By the digest in hexadecimal. */
  readonly #blocked = new Map<string, Buffer>()
  #onChange: (change: KeyChange) => void = () => {}
  #version = 0
  #open: Open | null = null
  #watcher: FSWatcher | null = null
  #timer: Timer | null = null
  /** The message of the trouble that was told last; null = all is well. */
  #trouble: string | null = null

  /**
   * Reads the store, which is made where it is missing. A store that
   * cannot be read is told, and has no keys yet.
   */
  constructor(options: KeyStoreOptions) {
    this.#options = options
    this.#attempt(() => {
      new KeyFile(options.file, START_PATIENCE).close()
      this.#read()
    })
  }

  /** The live keys. An object stays the same for as long as its key does. */
  keys(): Key[] {
    return Array.from(this.#known.values(), ({ key }) => key)
  }

  /** Digests of the keys that are shut out, wherever they come from. */
  blocked(): Buffer[] {
    return [...this.#blocked.values()]
  }

  /** Why the store cannot be read at present; null = it can. */
  get trouble(): string | null {
    return this.#trouble
  }

  /** From now on tells every change, as it happens. */
  follow(onChange: (change: KeyChange) => void): void {
    this.#onChange = onChange
    this.#look()
  }

  close(): void {
    this.#timer?.cancel()
    this.#watcher?.close()
    this.#open?.held.close()
    this.#open?.next.close()
    this.#open = null
  }

  readonly #look = (): void => {
    this.#timer?.cancel()
    this.#attempt(() => this.#read())
    this.#timer = this.#options.clock.setTimeout(this.#look, LOOK_EVERY)
  }

  #attempt(read: () => void): void {
    try {
      read()
    } catch (error) {
      const message = messageOf(error)
      if (message !== this.#trouble) this.#options.onTrouble(message)
      this.#trouble = message
      return
    }
    if (this.#trouble !== null) this.#options.onRecovered()
    this.#trouble = null
  }

  #read(): void {
    const { file } = this.#options
    const identity = identityOf(file)
    if (this.#open?.identity === identity) {
      this.#take(this.#open, false)
      return
    }
    // Another file has taken the place of the one before: all of it is read.
    const opened = open(file, identity)
    try {
      this.#take(opened, true)
    } catch (error) {
      opened.held.close()
      opened.next.close()
      throw error
    }
    this.#open?.held.close()
    this.#open?.next.close()
    this.#open = opened
    this.#watch()
  }

  /** Goes over to the present moment. When that fails, the one before is still held. */
  #take(open: Open, complete: boolean): void {
    const { held, next } = open
    try {
      const version = next.begin()
      const isOlder = version < this.#version
      if (complete || isOlder) this.#apply(next.rowsSince(0), next.blocksSince(0), true)
      else if (version > this.#version) {
        this.#apply(next.rowsSince(this.#version), next.blocksSince(this.#version), false)
      }
      this.#version = version
    } catch (error) {
      next.end()
      throw error
    }
    open.held = next
    open.next = held
    held.end()
  }

  #apply(rows: Iterable<KeyRow>, blocks: readonly Block[], complete: boolean): void {
    // All rows are read before any counts: a read that fails half way changes nothing.
    const all = [...rows]
    const added: Key[] = []
    const removed: Key[] = []
    const forget = (id: number): void => {
      const known = this.#known.get(id)
      if (known !== undefined) removed.push(known.key)
      this.#known.delete(id)
    }
    for (const row of all) {
      const id = Number(row['id'])
      if (row['revoked_at'] !== null) {
        forget(id)
        continue
      }
      const text = textOf(row)
      if (this.#known.get(id)?.text === text) continue
      const key = this.#readKey(row)
      if (key === null) continue
      forget(id)
      this.#known.set(id, { key, text })
      added.push(key)
    }
    if (complete) {
      const there = new Set(all.map(row => Number(row['id'])))
      for (const id of this.#known.keys()) if (!there.has(id)) forget(id)
    }
    const { blocked, unblocked } = this.#block(blocks, complete)
    if (added.length + removed.length + blocked.length + unblocked.length === 0) return
    this.#onChange({ added, removed, blocked, unblocked })
  }

  #block(blocks: readonly Block[], complete: boolean): Pick<KeyChange, 'blocked' | 'unblocked'> {
    const shut = new Map(
      blocks.filter(({ blockedAt }) => blockedAt !== null).map(block => [hex(block), block.digest]),
    )
    const blocked = [...shut].filter(([at]) => !this.#blocked.has(at))
    const changed = complete ? [...this.#blocked.keys()] : blocks.map(hex)
    const unblocked = changed.filter(at => this.#blocked.has(at) && !shut.has(at))
    const opened = unblocked.map(at => this.#blocked.get(at) as Buffer)
    for (const at of unblocked) this.#blocked.delete(at)
    for (const [at, digest] of blocked) this.#blocked.set(at, digest)
    return { blocked: blocked.map(([, digest]) => digest), unblocked: opened }
  }

  /** null for a row that cannot be read, which stands in nobody else's way. */
  #readKey(row: KeyRow): Key | null {
    try {
      return readRecord(row).key
    } catch (error) {
      this.#options.onTrouble(messageOf(error))
      return null
    }
  }

  #watch(): void {
    this.#watcher?.close()
    try {
      this.#watcher = watch(this.#options.file, { persistent: false }, this.#look)
      // A watch that breaks leaves the look every second.
      this.#watcher.on('error', () => this.#watcher?.close())
    } catch {
      // So does one that cannot be set up, as where the system has no more of them.
      this.#watcher = null
    }
  }
}

function open(file: string, identity: string | null): Open {
  if (identity === null) throw new KeyStoreError('missing', 'the file is gone')
  const held = new KeyReader(file, 0)
  try {
    return { identity, held, next: new KeyReader(file, 0) }
  } catch (error) {
    held.close()
    throw error
  }
}

/** Device and inode of a file; null when there is none. */
function identityOf(file: string): string | null {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
  return stat === undefined ? null : `${stat.dev}:${stat.ino}`
}

function hex({ digest }: Block): string {
  return digest.toString('hex')
}

function textOf({ name, digest, models, limits }: KeyRow): string {
  return JSON.stringify([name, Buffer.from(digest as Uint8Array).toString('hex'), models, limits])
}
