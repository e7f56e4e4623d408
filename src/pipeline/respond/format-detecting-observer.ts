import { beginsJson } from './body-classifier.ts'
import type { Observer } from './relay.ts'

/** Who looks on while an answer passes that does not say what it is: how it begins tells. */
export class FormatDetectingObserver implements Observer {
  #observer: Observer
  /** null: it has begun. */
  #createBodyObserver: (() => Observer) | null

  /**
   * @param stream looks on where it is a stream, as it is taken for until it begins
   * @param piece makes who looks on where it is in one piece
   */
  constructor(stream: Observer, piece: () => Observer) {
    this.#observer = stream
    this.#createBodyObserver = piece
  }

  get filter(): Observer['filter'] {
    return this.#observer.filter
  }

  get terminated(): boolean | null {
    return this.#observer.terminated
  }

  get atBoundary(): boolean {
    return this.#observer.atBoundary
  }

  push(chunk: Buffer): void {
    if (this.#createBodyObserver !== null && beginsJson(chunk)) this.#observer = this.#createBodyObserver()
    this.#createBodyObserver = null
    this.#observer.push(chunk)
  }

  end(): void {
    this.#observer.end()
  }
}
