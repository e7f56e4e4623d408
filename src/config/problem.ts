export interface Problem {
  readonly severity: 'error' | 'warning'
  /** The file as the operator named it. */
  readonly file: string
  /** From 1; null = the whole file. */
  readonly line: number | null
  /** From 1, in UTF-16 units; null if line is null. */
  readonly column: number | null
  /** What is wrong and what to change. Contains no secret. */
  readonly message: string
  /** The line with a caret below it, secrets masked; null if line is null. */
  readonly excerpt: string | null
}

/** The configuration cannot be used. Contains all problems, warnings included, in the file's order. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]
  /** The files that it names, as far as they could be read: a change in one of them may fix the configuration. */
  readonly files: readonly string[]
  readonly #text: string | null

  constructor(problems: readonly Problem[], { text = null, files = [] }: { readonly text?: string | null, readonly files?: readonly string[] } = {}) {
    super(problems.map(problem => formatProblem(problem)).join('\n\n'))
    this.name = 'ConfigError'
    this.problems = problems
    this.files = files
    this.#text = text
  }

  /** The file's text; null = unreadable. A getter, so that it is not logged with the error: it contains secrets. */
  get text(): string | null {
    return this.#text
  }
}

/** `file:line:column: severity: message`, then the line and its caret. @param paint colours the severity for a terminal */
export function formatProblem(problem: Problem, paint: (severity: string) => string = String): string {
  const { severity, message, excerpt } = problem
  const head = `${placeOf(problem)}: ${paint(severity)}: ${message}`
  return excerpt === null ? head : `${head}\n${excerpt}`
}

/** `file:line:column`, or only the file if there is no line. */
export function placeOf({ file, line, column }: Problem): string {
  return line === null ? file : `${file}:${line}:${column}`
}
