import type { EditRules, HeaderEdit, ValuePart } from '../../config/edit-types.ts'

/** Values of the request that headers can have; null = the request has none. */
export interface HeaderValues {
  readonly key: string | null
  readonly caller: string | null
  readonly group: string | null
  readonly requestId: string
  readonly tags: ReadonlyMap<string, string>
}

/** What rules change in the headers of one request and of its response. Flat. */
export interface HeaderChanges {
  onRequest(raw: readonly string[]): string[]
  onResponse(raw: readonly string[]): string[]
}

type Direction = 'requestHeaders' | 'responseHeaders'

/** @param raw names and values, flat */
export function editHeaders(raw: readonly string[], rules: readonly EditRules[], direction: Direction, values: HeaderValues): string[] {
  let headers = [...raw]
  for (const { [direction]: edits } of rules) {
    if (edits === null) continue
    const set = edits.set.flatMap(edit => headerOf(edit, values))
    const gone = new Set([...edits.remove, ...edits.set.map(({ name }) => name)])
    const kept = headers.filter((_, at) => !gone.has((headers[at - at % 2] as string).toLowerCase()))
    const names = new Set([...kept, ...set].filter((_, at) => at % 2 === 0).map(name => name.toLowerCase()))
    headers = [...kept, ...set, ...edits.default.filter(({ name }) => !names.has(name)).flatMap(edit => headerOf(edit, values))]
  }
  return headers
}

/** @returns nothing if the request lacks a value of the header */
function headerOf({ name, value }: HeaderEdit, values: HeaderValues): string[] {
  const parts = value.map(part => textOf(part, values))
  return parts.includes(null) ? [] : [name, parts.join('')]
}

function textOf(part: ValuePart, { key, caller, group, requestId, tags }: HeaderValues): string | null {
  if (typeof part === 'string') return part
  if (part.of === 'tag') return headerText(tags.get(part.tag) ?? null)
  return headerText(part.of === 'key' ? key : part.of === 'caller' ? caller : part.of === 'group' ? group : requestId)
}

/** Encodes values with characters that a header cannot have. */
function headerText(text: string | null): string | null {
  return text === null || /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(text) ? text : encodeURIComponent(text.toWellFormed())
}
