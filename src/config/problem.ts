export interface Problem {
  readonly severity: 'error' | 'warning'
  /** The path of the file as the operator wrote it. */
  readonly file: string
  /** Line, from 1; null = the problem concerns the whole file. */
  readonly line: number | null
  /** Column, from 1, in UTF-16 units; null if `line` is null. */
  readonly column: number | null
  /** Says what is wrong, and what to change. Contains no secret. */
  readonly message: string
  /** The line with secrets masked, and a caret below it; null if `line` is null. */
  readonly excerpt: string | null
}

/** Thrown if a configuration cannot be used. Contains all problems, including warnings, in the order of the file. */
export class ConfigError extends Error {
  readonly problems: readonly Problem[]
  /** The files that the configuration names, if they could be read. A change in one of these files may fix the configuration. */
  readonly files: readonly string[]
  readonly #text: string | null

  constructor(problems: readonly Problem[], { text = null, files = [] }: { readonly text?: string | null, readonly files?: readonly string[] } = {}) {
    super(problems.map(problem => formatProblem(problem)).join('\n\n'))
    this.name = 'ConfigError'
    this.problems = problems
    this.files = files
    this.#text = text
  }

  /** The text of the file; null = unreadable. The text contains secrets, so this is a getter: a logger does not log it with the error. */
  get text(): string | null {
    return this.#text
  }
}

/** Formats `file:line:column: severity: message`, followed by the line and its caret. @param paint colours the severity for a terminal */
export function formatProblem(problem: Problem, paint: (severity: string) => string = String): string {
  const { severity, message, excerpt } = problem
  const head = `${placeOf(problem)}: ${paint(severity)}: ${message}`
  return excerpt === null ? head : `${head}\n${excerpt}`
}

/** Formats `file:line:column`, or only the file if the problem has no line. */
export function placeOf({ file, line, column }: Problem): string {
  return line === null ? file : `${file}:${line}:${column}`
}
