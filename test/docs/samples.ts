/** A fenced block of a page, and how the test tries the block. */
export interface Sample {
  /** The language after the fence; '' = none. */
  readonly language: string
  readonly text: string
  /** Line of the fence, from 1. */
  readonly line: number
  /** How the test tries the block. */
  readonly trial: Trial
}

export type Trial =
  | { readonly how: 'run'; readonly prints: string | null; readonly fails: boolean }
  /** A gateway.yaml, or a part of one. */
  | { readonly how: 'config' }
  | { readonly how: 'json' }
  /** Configuration of nginx within `http`. */
  | { readonly how: 'nginx' }
  /** Not tried: output, or a file of another program. */
  | { readonly how: 'none'; readonly why: string }

const RUN: Trial = { how: 'run', prints: null, fails: false }

const BY_LANGUAGE: Readonly<Record<string, Trial>> = {
  sh: RUN,
  js: RUN,
  python: RUN,
  yaml: { how: 'config' },
  json: { how: 'json' },
  nginx: { how: 'nginx' },
  ...Object.fromEntries(['text', 'toml', 'ini', 'dockerfile'].map(
    language => [language, { how: 'none', why: 'text' }] as const,
  )),
}

/**
 * A block that is saved as a file in the directory of the page before the block is tried.
 */
export interface Saved extends Sample {
  readonly file: string | null
}

/**
 * The code samples of a page, in their order. What is tried goes by the language,
 * unless a comment before the fence says otherwise:
 *
 *     <!-- sample: prints "text" -->      run it; it ends well and prints this
 *     <!-- sample: fails "text" -->       run it; it ends badly and prints this
 *     <!-- sample: file gateway.yaml -->  save it for the samples that follow
 *     <!-- sample: not run: reason -->
 *
 * @throws Error for a language that says nothing of how it is tried, and for a comment that is none of these
 */
export function samplesOf(markdown: string): Saved[] {
  const samples: Saved[] = []
  const lines = markdown.split('\n')
  let directive: string | null = null
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as string
    const comment = /^\s*<!-- sample: (.*) -->$/.exec(line)
    if (comment) directive = comment[1] as string
    const fence = /^(\s*)(`{3,})(\w*)/.exec(line)
    if (!fence) continue
    const [, indent = '', ticks = '', language = ''] = fence
    const end = lines.findIndex((each, at) => at > index && each.trim() === ticks)
    if (end === -1) throw new Error(`line ${index + 1}: the block has no end`)
    const text = lines.slice(index + 1, end).map(each => each.slice(indent.length)).join('\n')
    samples.push({ language, text: `${text}\n`, line: index + 1, ...read(language, directive, index + 1) })
    directive = null
    index = end
  }
  if (directive !== null) throw new Error(`nothing follows <!-- sample: ${directive} -->`)
  return samples
}

function read(language: string, directive: string | null, line: number): Pick<Saved, 'trial' | 'file'> {
  const usual = BY_LANGUAGE[language]
  if (directive === null) {
    if (usual === undefined) throw new Error(`line ${line}: no test knows how to run '${language}'`)
    return { trial: usual, file: null }
  }
  const why = /^not run: (.+)$/.exec(directive)?.[1]
  if (why !== undefined) return { trial: { how: 'none', why }, file: null }
  const file = /^file ([\w./-]+)$/.exec(directive)?.[1]
  if (file !== undefined) {
    return { trial: usual === RUN ? { how: 'none', why: 'saved' } : usual ?? NONE, file }
  }
  const [, verb, quoted] = /^(prints|fails) ("(?:[^"\\]|\\.)*")$/.exec(directive) ?? []
  if (quoted === undefined) throw new Error(`line ${line}: what is '${directive}'?`)
  return { trial: { how: 'run', prints: JSON.parse(quoted) as string, fails: verb === 'fails' }, file: null }
}

const NONE: Trial = { how: 'none', why: 'saved' }
