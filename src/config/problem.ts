/** What is wrong with a configuration, or only odd, at one place of the file. */
export interface Problem {
  readonly severity: 'error' | 'warning'
  /** The file as the operator named it. */
  readonly file: string
  /** From 1; null when the trouble is with the file as a whole. */
  readonly line: number | null
  /** From 1, in UTF-16 units; null together with line. */
  readonly column: number | null
  /** What is wrong and what to change. Never a secret. */
  readonly message: string
  /** The line with a caret below it, secrets masked; null together with line. */
  readonly excerpt: string | null
}

/** The configuration cannot be used. It carries every problem, warnings included, in the file's order. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]
  /** The files that it names, as far as that could be read: a change of one may make it right. */
  readonly files: readonly string[]
  readonly #text: string | null

  constructor(problems: readonly Problem[], { text = null, files = [] }: { readonly text?: string | null, readonly files?: readonly string[] } = {}) {
    super(problems.map(problem => formatProblem(problem)).join('\n\n'))
    this.name = 'ConfigError'
    this.problems = problems
    this.files = files
    this.#text = text
  }

  /** Of its file; null where that cannot be read. No log line about the error has it: secrets are in it. */
  get text(): string | null {
    return this.#text
  }
}

/**
 * A problem as people read it: `file:line:column: severity: message`, then the
 * line and its caret.
 * @param paint colours the severity where the reader has a terminal
 */
export function formatProblem(problem: Problem, paint: (severity: string) => string = plain): string {
  const { severity, message, excerpt } = problem
  const head = `${placeOf(problem)}: ${paint(severity)}: ${message}`
  return excerpt === null ? head : `${head}\n${excerpt}`
}

/** `file:line:column`, or the file where there is no more to say. */
export function placeOf({ file, line, column }: Problem): string {
  return line === null ? file : `${file}:${line}:${column}`
}

function plain(text: string): string {
  return text
}
