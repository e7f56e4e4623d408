import type { JsonObject } from '../../../src/protocols/neutral/json.ts'

/** How an entry differs from the other copies of it. */
export type Copies =
  /** All copies are equal, with the same id. */
  | 'same'
  /** Strings and numbers that identify an entry contain the number of the copy. */
  | 'numbered'

/** CPU time in ms below which the ratio is not used, because a nested loop over the entries takes longer. */
const FLOOR = 20
const MAX_RATIO = 3
const ATTEMPTS = 4
/** CPU time in ms from which one run is enough, because chance does not make a run so long. */
const CLEAR = 1_000

/**
 * How often as long something computes for twice as many entries. The time is that of the processor: what else the machine
 * does is not in it. Of several runs the fastest counts, and there are more of them only as long as the ratio is suspicious.
 *
 * @param prepare makes what is timed, of that many entries
 * @returns 0 = too fast to tell
 */
function growthRatio(prepare: (entries: number) => () => unknown, entries: number): number {
  const large = prepare(2 * entries)
  let longer = milliseconds(large)
  if (longer < FLOOR) return 0
  const small = prepare(entries)
  let shorter = milliseconds(small)
  for (let n = 1; n < ATTEMPTS && longer < CLEAR && longer > MAX_RATIO * shorter; n++) {
    shorter = Math.min(shorter, milliseconds(small))
    longer = Math.min(longer, milliseconds(large))
  }
  return longer / shorter
}

/** Is the time quadratic? Checks twice as many entries too, because a ratio by other causes, such as garbage, does not stay. */
export function isQuadratic(prepare: (entries: number) => () => unknown, entries: number): boolean {
  return growthRatio(prepare, entries) > MAX_RATIO && growthRatio(prepare, 2 * entries) > MAX_RATIO
}

function milliseconds(run: () => unknown): number {
  const start = process.threadCpuUsage().user
  run()
  return (process.threadCpuUsage().user - start) / 1000
}

type Path = readonly (string | number)[]

/** A list in a sample; `level` is the number of lists around it. */
export interface List {
  readonly path: Path
  readonly level: number
  readonly hasLists: boolean
}

/** @returns the lists of a sample that are not empty */
export function listsIn(value: unknown, path: Path = [], level = 0): List[] {
  if (typeof value !== 'object' || value === null) return []
  const isList = Array.isArray(value)
  const inner = Object.entries(value).flatMap(([name, member]) => listsIn(member, [...path, isList ? Number(name) : name], level + (isList ? 1 : 0)))
  return isList && value.length > 0 ? [{ path, level, hasLists: inner.length > 0 }, ...inner] : inner
}

/** Objects whose member names the client chooses. */
const OPEN = new Set(['properties', '$defs', 'metadata', 'labels', 'args', 'input', 'response'])

/** The objects of a sample that may have any members. */
export function openObjectsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const inner = [...path, Array.isArray(value) ? Number(name) : name]
    const isOpen = OPEN.has(name) && typeof member === 'object' && !Array.isArray(member)
    return [...isOpen ? [inner] : [], ...openObjectsIn(member, inner)]
  })
}

/** @returns the value with the lists at these paths extended to `entries`; no list is inside of another */
export function withLists(value: unknown, paths: readonly Path[], entries: number, copies: Copies): unknown {
  return paths.reduce((grown, path) => replaced(grown, path, list => repeated(list as readonly unknown[], entries, copies)), value)
}

/** @returns the value with that many members in an object */
export function withMembers(value: unknown, path: Path, members: number): unknown {
  return replaced(value, path, object => {
    const given = Object.values(object as JsonObject)
    return { ...object as JsonObject, ...Object.fromEntries(Array.from({ length: members }, (_, n) => [`member_${n}`, given[n % given.length] ?? 'x'])) }
  })
}

/** @returns copies of a list, joined up to a length */
export function repeated(list: readonly unknown[], entries: number, copies: Copies): unknown[] {
  return Array.from({ length: entries }, (_, n) => {
    const entry = list[n % list.length]
    return copies === 'same' ? entry : numbered(entry, Math.floor(n / list.length))
  })
}

const NUMBERED = /id$|^name$|^Name$|index$|Index$/

/** @returns a copy of an entry with the number in each value that identifies the entry */
export function numbered(value: unknown, n: number, name = ''): unknown {
  if (Array.isArray(value)) return value.map(item => numbered(item, n, name))
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([member, inner]) => [member, numbered(inner, n, member)]))
  }
  if (name === '' && typeof value === 'string') return `${value}_${n}`
  if (!NUMBERED.test(name)) return value
  return typeof value === 'number' ? value + n : typeof value === 'string' ? `${value}_${n}` : value
}

function replaced(value: unknown, [name, ...rest]: Path, change: (inner: unknown) => unknown): unknown {
  if (name === undefined) return change(value)
  if (Array.isArray(value)) return value.map((item, n) => n === name ? replaced(item, rest, change) : item)
  return { ...value as JsonObject, [name]: replaced((value as JsonObject)[name], rest, change) }
}
