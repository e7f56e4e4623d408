import { locate, type Located, type Path } from './document.ts'
import type { Problem } from '../problem.ts'
import { printable, type SourceText, type Range } from './source-text.ts'

interface Finding {
  readonly severity: Problem['severity']
  /** null = the whole file. */
  readonly offset: number | null
  readonly message: string
  /** Findings of the same kind at the same place are reported once. */
  readonly kind: string
}

/** Collects findings by their path in the file while the configuration is built. */
export class Findings {
  readonly #file: string
  readonly #source: SourceText
  readonly #root: Located
  readonly #findings: Finding[] = []
  readonly #secrets: () => readonly Range[]
  readonly #mistyped = new Set<string>()

  /**
   * @param file as the operator named it
   * @param secrets sorted and disjoint ranges that must not be shown; called only if there is something to show
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
   * Adds an error, unless the value already has a reported fault.
   * @param kind identifies the finding, so that content that aliases use at many paths is reported once
   */
  error(path: Path, message: string, at: 'value' | 'key' = 'value', kind: string = message): void {
    this.#add('error', path, message, at, kind)
  }

  /** null = the parser threw a RangeError, which is reported */
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

  warnFile(message: string): void {
    this.#findings.push({ severity: 'warning', offset: null, message, kind: message })
  }

  /** A mistyped key takes the place of this path: do not report that this path is missing. */
  markMistyped(path: Path): void {
    this.#mistyped.add(JSON.stringify(path.map(String)))
  }

  /** Does the file have something at this path, even if wrong or mistyped? */
  has(path: Path): boolean {
    return this.located(path) !== undefined || this.#mistyped.has(JSON.stringify(path.map(String)))
  }

  names(path: Path): string[] {
    return [...this.located(path)?.children.keys() ?? []]
  }

  located(path: Path): Located | undefined {
    return locate(this.#root, path)
  }

  /** The line of a path, from 1. */
  line(path: Path): number {
    return this.#source.position(this.#place(path, 'value').start).line
  }

  /** Without duplicates, in the file's order. */
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
        // The message contains names from the file.
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

  /** The position of the path, or of its longest existing part. */
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

/** `routes[2].to` */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number' || /^\d+$/.test(step)) return `${text}[${step}]`
    if (/\s/.test(step)) return `${text}.<name>` // may be a name and a value without a colon
    return text === '' ? step : `${text}.${step}`
  }, '')
}
