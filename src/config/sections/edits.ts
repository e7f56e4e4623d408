import type { BodyEdits, EditRules, HeaderEdit, HeaderEdits, ValuePart } from '../edit-types.ts'
import { loosely } from '../../protocols/json/watched-keys.ts'
import { didYouMean } from '../nearest.ts'
import type { RawEdit, RawHeaderEdit } from '../raw.ts'
import type { Path } from '../text/document.ts'
import type { Findings } from '../text/findings.ts'
import { checkHeaderValue, headerName } from './header.ts'

/** Headers that the gateway sets or reads itself, or that hold a credential. */
const OWNED = /^(?:authorization|cookie2?|set-cookie2?|via|forwarded|content-type|content-encoding|accept-encoding|sec-websocket-.*|x-gateway-.*|x-forwarded-.*|x-real-ip|traceparent|tracestate|apikey|(?:x[-_]|x[-_]goog[-_])?api[-_]?key|x[-_]gateway[-_]key)$/
const PLACES = ['key', 'caller', 'group', 'request_id'] as const
const PLACE = /\{([^{}]*)\}/
/** Members that decide where a request goes, or that are its conversation: `system` changes the latter. */
const FIXED: ReadonlySet<string> = new Set(['model', 'stream', 'messages', 'input', 'contents', 'prompt', 'system', 'instructions', 'systeminstruction'])
const MAX_DEPTH = 4

/** The changes at one place: the top, a group, a key or a route. @returns null = none */
export function buildEdit(raw: RawEdit | undefined, path: Path, findings: Findings): EditRules | null {
  if (raw === undefined) return null
  return {
    requestHeaders: buildHeaders(raw.request_headers, [...path, 'request_headers'], findings),
    responseHeaders: buildHeaders(raw.response_headers, [...path, 'response_headers'], findings),
    body: raw.body === undefined ? null : buildBody(raw.body, [...path, 'body'], findings),
    system: raw.system === undefined ? null : { prepend: raw.system.prepend ?? null, append: raw.system.append ?? null },
    cache: raw.cache === 'auto',
  }
}

function buildHeaders(raw: RawHeaderEdit | undefined, path: Path, findings: Findings): HeaderEdits | null {
  if (raw === undefined) return null
  const edits = (part: 'set' | 'default'): HeaderEdit[] => Object.entries(raw[part] ?? {}).flatMap(([name, value]) => {
    if (value === undefined) return []
    const at = [...path, part, name]
    return [{ name: editedHeader(name, at, findings, 'key'), value: valueParts(value, at, findings) }]
  })
  const remove = (raw.remove ?? []).flatMap((name, at) => (name === undefined ? [] : [editedHeader(name, [...path, 'remove', at], findings, 'value')]))
  return { set: edits('set'), default: edits('default'), remove }
}

function editedHeader(text: string, path: Path, findings: Findings, at: 'key' | 'value'): string {
  const name = headerName(text, path, findings, at)
  if (OWNED.test(name)) findings.error(path, 'the gateway sets this header itself, or it holds a credential; it cannot be edited', at)
  return name
}

function valueParts(text: string, path: Path, findings: Findings): ValuePart[] {
  checkHeaderValue(text, path, findings)
  return text.split(new RegExp(PLACE, 'g')).flatMap((part, n): ValuePart[] => {
    if (n % 2 === 0) return part === '' ? [] : [part]
    if (part.startsWith('tag:') && part.length > 4) return [{ of: 'tag', tag: part.slice(4) }]
    const of = PLACES.find(place => place === part)
    if (of !== undefined) return [{ of }]
    findings.error(path, `{${part}} stands for nothing${didYouMean(part, PLACES)}; there is {key}, {caller}, {group}, {tag:NAME} and {request_id}`)
    return []
  })
}

function buildBody(raw: NonNullable<RawEdit['body']>, path: Path, findings: Findings): BodyEdits {
  const values = <T>(part: 'set' | 'default' | 'cap', entries: Record<string, T | undefined> = {}): Map<string, T> => new Map(
    Object.entries(entries).flatMap(([name, value]) => {
      checkMember(name, [...path, part, name], findings, 'key')
      return value === undefined ? [] : [[name, value] as const]
    }),
  )
  for (const [at, name] of (raw.remove ?? []).entries()) if (name !== undefined) checkMember(name, [...path, 'remove', at], findings, 'value')
  return {
    set: values('set', raw.set), default: values('default', raw.default), cap: values('cap', raw.cap),
    remove: (raw.remove ?? []).filter(name => name !== undefined),
  }
}

function checkMember(name: string, path: Path, findings: Findings, at: 'key' | 'value'): void {
  const names = name.split('.')
  if (names.includes('')) findings.error(path, 'a dot stands between two names', at)
  if (names.length > MAX_DEPTH) findings.error(path, `a member is at most in ${MAX_DEPTH - 1} objects`, at)
  if (!FIXED.has(loosely(names[0] ?? ''))) return
  findings.error(path, `${names[0]} cannot be edited; routes choose models, and system: { prepend, append } changes the instructions`, at)
}
