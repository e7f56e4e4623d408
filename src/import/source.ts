import { LineCounter, isMap, isNode, isSeq, parseDocument } from 'yaml'
import type { Document } from 'yaml'

export type Path = readonly (string | number)[]

/** A file that cannot be imported; the message says why, with its place where there is one. */
export class ImportError extends Error {
  override readonly name = 'ImportError'
}

/** A foreign YAML file that is read setting by setting: what nobody took is known at the end. */
export class Source {
  readonly #document: Document
  readonly #lines = new LineCounter()
  readonly #taken = new Set<string>()

  /** @throws ImportError for text that is no YAML mapping */
  constructor(text: string) {
    this.#document = parseDocument(text, { lineCounter: this.#lines })
    const [fault] = this.#document.errors
    if (fault) {
      const { line, col } = this.#lines.linePos(fault.pos[0])
      throw new ImportError(`${line}:${col}: ${fault.message.split(' at line')[0]}`)
    }
    if (!isMap(this.#document.contents)) throw new ImportError('it is not a mapping of settings')
    // Resolves aliases, of which a hostile file has too many.
    try {
      this.#document.toJS()
    } catch (error) {
      throw new ImportError((error as Error).message)
    }
  }

  /** The value at a path, with all that is below; it counts as taken. undefined where there is none. */
  take(path: Path): unknown {
    this.#taken.add(key(path))
    return this.peek(path)
  }

  /** The same without taking it. */
  peek(path: Path): unknown {
    const found = this.#document.getIn(path)
    return isNode(found) ? found.toJS(this.#document) as unknown : found
  }

  /** Takes a text that is not empty; null, and nothing taken, where there is none. */
  text(path: Path): string | null {
    const value = this.peek(path)
    if (typeof value !== 'string' || value === '') return null
    this.take(path)
    return value
  }

  /** Takes a number, be it in quotes; null, and nothing taken, where there is none. */
  number(path: Path): number | null {
    const value = this.peek(path)
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) return null
    this.take(path)
    return number
  }

  /** How many entries the list at a path has; 0 where there is no list. */
  length(path: Path): number {
    const found = this.#document.getIn(path)
    return isSeq(found) ? found.items.length : 0
  }

  /** `line:column` of the value at a path, both from 1. */
  place(path: Path): string {
    const node = this.#document.getIn(path, true)
    const { line, col } = this.#lines.linePos(isNode(node) ? node.range?.[0] ?? 0 : 0)
    return `${line}:${col}`
  }

  /** The outermost settings of which nobody took anything, in the file's order. */
  rest(): Path[] {
    return this.#restOf(this.peek([]), [])
  }

  #restOf(value: unknown, path: Path): Path[] {
    if (this.#taken.has(key(path))) return []
    const isTouched = path.length === 0 || [...this.#taken].some(taken => taken.startsWith(`${key(path)}\0`))
    if (!isTouched) return [path]
    if (Array.isArray(value)) return value.flatMap((each, index) => this.#restOf(each, [...path, index]))
    if (typeof value !== 'object' || value === null) return []
    return Object.entries(value).flatMap(([name, each]) => this.#restOf(each, [...path, name]))
  }
}

/** `model_list[0].litellm_params.model` */
export function dotted(path: Path): string {
  const parts = path.map(part => (typeof part === 'number' ? `[${part}]` : `.${part}`))
  return parts.join('').replace(/^\./, '')
}

function key(path: Path): string {
  return path.join('\0')
}
