import { Checkpoints } from './checkpoints.ts'
import type { FromWriter, WriterOptions } from './messages.ts'
import { Store } from './store.ts'
import type { Batch } from './store.ts'
import { troubleOf } from './failure.ts'
import type { Trouble } from './failure.ts'

const FIRST_RETRY = 50
const LAST_RETRY = 5000

/**
 * Writes batches in the order in which they come, and keeps trying when it
 * cannot. All that can block is done here, in a thread of its own.
 */
export class Writer {
  readonly #options: WriterOptions
  readonly #post: (message: FromWriter) => void
  readonly #batches: Batch[] = []
  readonly #underWay = new Set<'sum' | 'expire'>()
  readonly #checkpoints: Checkpoints
  #store: Store | null = null
  #retry: NodeJS.Timeout | null = null
  #delay = FIRST_RETRY
  #well = false
  #closed = false

  constructor(options: WriterOptions, post: (message: FromWriter) => void) {
    this.#options = options
    this.#checkpoints = new Checkpoints(options.file, () => this.#checkpoint())
    this.#post = post
  }

  /** Writes a batch, now or as soon as that is possible. */
  write(batch: Batch): void {
    this.#batches.push(batch)
    this.#attempt(store => this.#writeAll(store))
  }

  /** Opens the file, and settles what processes that died had in flight. */
  recover(): void {
    this.#attempt(store => this.#recover(store))
  }

  /** Enters rows in the sums. */
  sum(): void {
    this.#inPieces('sum', store => store.sum())
  }

  /** Deletes what is older than it is kept. */
  expire(): void {
    const { keep } = this.#options
    // Only what is in the sums may go.
    this.#inPieces('expire', store => {
      const now = Date.now()
      return store.sum() || store.expire(keep === null ? null : now - keep, now)
    })
  }

  /** Tries once more to write what waits, and closes the file; what is still in flight is interrupted. */
  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#retry = null
    if (this.#batches.length > 0) this.#attempt(store => this.#writeAll(store))
    if (this.#retry !== null) clearTimeout(this.#retry)
    this.#checkpoints.stop()
    this.#store?.close()
    this.#store = null
    this.#closed = true
  }

  /** @returns whether all that was written is in the database itself */
  #checkpoint(): boolean {
    let isAll = false
    this.#attempt(store => {
      isAll = store.checkpoint()
    })
    return isAll || this.#closed
  }

  /**
   * Does a long work between batches, so that these get their turn.
   * @param piece returns whether there may be more
   */
  #inPieces(work: 'sum' | 'expire', piece: (store: Store) => boolean): void {
    if (this.#underWay.has(work)) return
    this.#attempt(store => {
      if (!piece(store)) return
      this.#underWay.add(work)
      setImmediate(() => {
        this.#underWay.delete(work)
        this.#inPieces(work, piece)
      })
    })
  }

  #attempt(work: (store: Store) => void): void {
    if (this.#retry !== null || this.#closed) return
    try {
      work(this.#store ?? this.#open())
      this.#succeed()
    } catch (error) {
      this.#report(this.#fail(error))
      this.#retry = setTimeout(() => {
        this.#retry = null
        this.#attempt(store => this.#writeAll(store))
      }, this.#delay)
      this.#delay = Math.min(this.#delay * 2, LAST_RETRY)
    }
  }

  #writeAll(store: Store): void {
    for (let batch = this.#batches[0]; batch !== undefined; batch = this.#batches[0]) {
      const rejected = store.write(batch)
      this.#checkpoints.written()
      this.#batches.shift()
      this.#succeed()
      this.#post({
        kind: 'written',
        seq: batch.seq,
        lost: rejected?.closed ?? 0,
        refused: rejected === null ? null : troubleOf(rejected.error),
      })
    }
  }

  #recover(store: Store): void {
    const requests = store.recover()
    if (requests > 0) this.#post({ kind: 'interrupted', requests })
  }

  #open(): Store {
    const { file, instance } = this.#options
    const store = new Store(file, instance)
    this.#store = store
    if (store.setAside !== null) {
      this.#report({ code: 'corrupt', message: `the file was unreadable: it is kept as ${store.setAside}, ` +
        'and a new one was started' })
    }
    this.#recover(store)
    return store
  }

  #fail(error: unknown): Trouble {
    const trouble = troubleOf(error)
    const store = this.#store
    // A file that is full or locked is as good as before when that is over.
    if (store === null || trouble.code === 'locked' || trouble.code === 'full') return trouble
    this.#checkpoints.stop()
    this.#store = null
    if (trouble.code !== 'corrupt') {
      store.abandon()
      return trouble
    }
    const kept = store.abandonBroken()
    return kept === null ? trouble : { ...trouble, message: `${trouble.message}: it is kept as ${kept}` }
  }

  #succeed(): void {
    if (!this.#well) this.#post({ kind: 'well' })
    this.#well = true
    this.#delay = FIRST_RETRY
  }

  #report(trouble: Trouble): void {
    this.#well = false
    this.#post({ kind: 'trouble', trouble })
  }
}
