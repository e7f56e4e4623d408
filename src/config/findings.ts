import { locate } from './document.ts'
import type { Located, Path } from './document.ts'
import type { Problem } from './problem.ts'
import { printable } from './source-text.ts'
import type { SourceText, Range } from './source-text.ts'

interface Finding {
  readonly severity: Problem['severity']
  /** null where it concerns the file as a whole. */
  readonly offset: number | null
  readonly message: string
  /** Two findings of one kind at one place are one. */
  readonly kind: string
}

/** Collects what is wrong, by path in the file, while the configuration is built. */
export class Findings {
  readonly #file: string
  readonly #source: SourceText
  readonly #root: Located
  readonly #findings: Finding[] = []
  readonly #secrets: () => readonly Range[]
  readonly #mistyped = new Set<string>()

  /**
   * @param file the file's name as the operator gave it
   * @param secrets what must not be shown, in order and apart; asked for when there is something to show
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

  /** At an offset of the text. */
  errorAt(offset: number, message: string): void {
    this.#findings.push({ severity: 'error', offset, message, kind: message })
  }

  /**
   * At the value of a path, or at its key. Silent if a problem of the value was reported before.
   * @param kind what the finding is about; said once for content that aliases use at many paths
   */
  error(path: Path, message: string, at: 'value' | 'key' = 'value', kind: string = message): void {
    this.#add('error', path, message, at, kind)
  }

  /** What a parser makes of the value at a path; null, and an error, where it raises a RangeError. */
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

  /** About the file as a whole. */
  warnFile(message: string): void {
    this.#findings.push({ severity: 'warning', offset: null, message, kind: message })
  }

  /** A mistyped key stands for this path: that it is missing need not be reported too. */
  markMistyped(path: Path): void {
    this.#mistyped.add(JSON.stringify(path.map(String)))
  }

  /** Does the file say anything at this path, even something wrong or mistyped? */
  has(path: Path): boolean {
    return this.located(path) !== undefined || this.#mistyped.has(JSON.stringify(path.map(String)))
  }

  /** The names that the file gives in the map at this path. */
  names(path: Path): string[] {
    return [...this.located(path)?.children.keys() ?? []]
  }

  located(path: Path): Located | undefined {
    return locate(this.#root, path)
  }

  /** From 1. */
  line(path: Path): number {
    return this.#source.position(this.#place(path, 'value').start).line
  }

  /** What was found, each once, in the file's order. */
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
        // Names of the file are in it.
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

  /** Where the path, or what is there of it, stands. */
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

/** A problem without a place in the file. */
export function fileProblem(file: string, severity: Problem['severity'], message: string): Problem {
  return { severity, file, line: null, column: null, message, excerpt: null }
}

/** A path as operators say it: `routes[2].to`. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number' || /^\d+$/.test(step)) return `${text}[${step}]`
    if (/\s/.test(step)) return `${text}.<name>` // a name and a value, perhaps, whose colon is missing
    return text === '' ? step : `${text}.${step}`
  }, '')
}
