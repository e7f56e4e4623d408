/*
 * How much a model server generates for a request at most, where it takes numbers and names as leniently as some
 * server does: names in any case, strings as numbers, the first or the last of two.
 */

export interface Leniency {
  /** Names match regardless of case and separators, as in Go and in protocol buffers. */
  readonly anyName: boolean
  /** Which of two members with the same name counts. */
  readonly wins: 'first' | 'last'
  /** How strings are read as numbers: `python` as `int("1_000")`, `float` as `parseFloat("1e6.5")`, `strict` not at all. */
  readonly numbers: 'python' | 'float' | 'strict'
}

/** Fields of the token bound and of the number of responses, by protocol, as documented by the vendors. */
const NAMES: Readonly<Record<string, { readonly bound: readonly string[], readonly count: readonly string[], readonly inside?: string }>> = {
  chat: { bound: ['max_completion_tokens', 'max_tokens'], count: ['n'] },
  completions: { bound: ['max_tokens'], count: ['n', 'best_of'] },
  responses: { bound: ['max_output_tokens'], count: [] },
  messages: { bound: ['max_tokens'], count: [] },
  generate: { bound: ['maxOutputTokens', 'max_output_tokens'], count: ['candidateCount', 'candidate_count'], inside: 'generationConfig' },
}

/** @returns output tokens, all responses together */
export function generatedTokens(protocol: string, text: string, server: Leniency, ofItself: number): number {
  const { bound, count, inside } = NAMES[protocol]!
  const root = membersOf(text)
  const extra = membersIn(root, 'extra_body', server)
  const all = [...root, ...extra]
  const config = inside === undefined ? all : membersIn(all, inside, server)
  const figure = (names: readonly string[]) => names.map(name => numberOf(find(config, name, server), server)).filter(number => number !== null)
  const output = figure(bound)[0] || ofItself
  return output * Math.max(1, ...figure(count))
}

type Members = readonly (readonly [name: string, value: unknown])[]

/** @returns the members of an object, with duplicates, which JSON.parse would drop */
function membersOf(text: string): Members {
  const members: [string, unknown][] = []
  const inside = text.trim().slice(1, -1)
  let start = 0
  for (let at = 0, depth = 0, quoted = false; at <= inside.length; at++) {
    const character = inside[at]
    if (quoted) {
      if (character === '\\') at++
      else if (character === '"') quoted = false
    } else if (character === '"') quoted = true
    else if (character === '{' || character === '[') depth++
    else if (character === '}' || character === ']') depth--
    else if ((character === ',' && depth === 0) || at === inside.length) {
      const part = inside.slice(start, at)
      start = at + 1
      if (part.trim() === '') continue
      const key = /^\s*("(?:[^"\\]|\\.)*")\s*:/.exec(part)!
      const value = part.slice(key[0].length).trim()
      members.push([JSON.parse(key[1]!) as string, value.startsWith('{') ? new Raw(value) : JSON.parse(value)])
    }
  }
  return members
}

class Raw {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

function membersIn(members: Members, name: string, server: Leniency): Members {
  const value = find(members, name, { ...server, anyName: true })
  return value instanceof Raw ? membersOf(value.text) : []
}

function find(members: Members, name: string, { anyName, wins }: Leniency): unknown {
  const plain = (text: string) => anyName ? text.replace(/[_-]/g, '').toUpperCase() : text
  const found = members.filter(([other]) => plain(other) === plain(name))
  return found.at(wins === 'first' ? 0 : -1)?.[1]
}

function numberOf(value: unknown, { numbers }: Leniency): number | null {
  if (typeof value === 'number') return value >= 0 ? Math.ceil(value) : null
  if (typeof value !== 'string' || numbers === 'strict') return null
  const number = numbers === 'float' ? Number.parseFloat(value) : /^\s*\+?\d+(?:_\d+)*\s*$/.test(value) ? Number(value.replaceAll('_', '')) : NaN
  return number >= 0 ? Math.ceil(number) : null
}
