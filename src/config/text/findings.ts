import { locate, type Located, type Path } from './document.ts'
import type { Problem } from '../problem.ts'
import { printable, type SourceText, type Range } from './source-text.ts'

interface Finding {
  readonly severity: Problem['severity']
  /** Offset in the file; null = the finding concerns the whole file. */
  readonly offset: number | null
  readonly message: string
  /** Of several findings of the same kind at the same place, only one is reported. */
  readonly kind: string
}

/** Collects findings while the configuration is built. Each finding has a path in the file. */
export class Findings {
  readonly #file: string
  readonly #source: SourceText
  readonly #root: Located
  readonly #findings: Finding[] = []
  readonly #secrets: () => readonly Range[]
  readonly #mistyped = new Set<string>()

  /**
   * @param file the path as the operator wrote it
   * @param secrets returns the ranges that must not be shown, sorted and disjoint; called only if there are findings
   */
  constructor(file: string, source: SourceText, root: Located, secrets: () => readonly Range[]) {
    this.#file = file
    this.#source = source
    this.#root = root
    this.#secrets = secrets
  }

  get failed(): boolean {
    return this.#findings.some(({ severity }) => severity === 'error')
  }

  errorAt(offset: number, message: string): void {
    this.#findings.push({ severity: 'error', offset, message, kind: message })
  }

  /**
   * Adds an error, unless a fault of the value has already been reported.
   * @param kind the kind of the finding: content that aliases use at many paths is reported once for each kind
   */
  error(path: Path, message: string, at: 'value' | 'key' = 'value', kind: string = message): void {
    this.#add('error', path, message, at, kind)
  }

  /** Parses a value. @returns null = the parser threw a RangeError, which is reported */
  parsed<T>(path: Path, parse: () => T): T | null {
    try {
      return parse()
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      this.error(path, `${formatPath(path)}: ${error.message}`)
      return null
    }
  }

  warn(path: Path, message: string, at: 'value' | 'key' = 'value'): void {
    this.#add('warning', path, message, at, message)
  }

  errorFile(message: string): void {
    this.#findings.push({ severity: 'error', offset: null, message, kind: message })
  }

  warnFile(message: string): void {
    this.#findings.push({ severity: 'warning', offset: null, message, kind: message })
  }

  /** Records that a mistyped key stands for this path, so that the path is not reported as missing. */
  markMistyped(path: Path): void {
    this.#mistyped.add(JSON.stringify(path.map(String)))
  }

  /** Tells whether the file has a value at this path, even a wrong value or one with a mistyped key. */
  has(path: Path): boolean {
    return this.located(path) !== undefined || this.#mistyped.has(JSON.stringify(path.map(String)))
  }

  names(path: Path): string[] {
    return [...this.located(path)?.children.keys() ?? []]
  }

  located(path: Path): Located | undefined {
    return locate(this.#root, path)
  }

  /** The line of the path's value, from 1. */
  line(path: Path): number {
    return this.#source.position(this.#place(path, 'value').start).line
  }

  /** All problems without duplicates, in the order of the file. */
  problems(): Problem[] {
    const secrets = this.#findings.length === 0 ? [] : this.#secrets()
    const once = new Map<string, Finding>()
    for (const finding of this.#findings) {
      const place = `${finding.offset} ${finding.kind}`
      if (!once.has(place)) once.set(place, finding)
    }
    return [...once.values()]
      .sort((a, b) => (a.offset ?? -1) - (b.offset ?? -1))
      .map(({ severity, offset, message: said }) => {
        // Replace misleading characters, because the message contains names from the file.
        const message = printable(said)
        if (offset === null) return fileProblem(this.#file, severity, message)
        const { line, column } = this.#source.position(offset)
        const excerpt = this.#source.excerpt(offset, secrets)
        return { severity, file: this.#file, line, column, message, excerpt }
      })
  }

  #add(severity: Problem['severity'], path: Path, message: string, at: 'value' | 'key', kind: string): void {
    if (this.located(path)?.faulty) return
    this.#findings.push({ severity, offset: this.#place(path, at).start, message, kind })
  }

  /** The position of the path. If the path does not exist, the position of its longest existing part. */
  #place(path: Path, at: 'value' | 'key'): Range {
    let located = this.#root
    for (const step of path) {
      const child = located.children.get(String(step))
      if (child === undefined) break
      located = child
    }
    return at === 'key' ? located.key ?? located.at : located.at
  }
}

/** A problem without a position in the file. */
export function fileProblem(file: string, severity: Problem['severity'], message: string): Problem {
  return { severity, file, line: null, column: null, message, excerpt: null }
}

/** Formats a path: `routes[2].to`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number' || /^\d+$/.test(step)) return `${text}[${step}]`
    if (/\s/.test(step)) return `${text}.<name>` // the step may be a name and a secret value without a colon between them
    return text === '' ? step : `${text}.${step}`
  }, '')
}
