import { JsonCursor } from '../json/cursor.ts'
import type { Edit } from '../json/splice.ts'
import { loosely } from '../json/watched-keys.ts'

/** `tool_arguments`: what a model gave to a tool. `tool_result`: what the tool returned. */
export type TextKind = 'text' | 'tool_arguments' | 'tool_result' | 'document'

/** A text of a request, and its place in the body. */
export interface RequestText {
  /** `t1`, `t2`, ... in the order of the body. */
  readonly id: string
  /** Who wrote it: `system`, `user`, `assistant`, `tool` or another role that the client names. */
  readonly role: string
  readonly kind: TextKind
  /** Bounds of the JSON string, with its quotes. */
  readonly start: number
  readonly end: number
}

// Names match in any case and without separators, because some servers read them so.
/** Members of a request that hold its conversation, prompt or input. */
const ROOTS: ReadonlySet<string> = new Set([
  'messages', 'contents', 'content', 'input', 'inputs', 'item', 'items', 'instructions', 'system', 'systeminstruction', 'prompt', 'suffix', 'documents', 'query',
  'prediction', 'texts', 'instances',
])
const SYSTEM_ROOTS: ReadonlySet<string> = new Set(['system', 'systeminstruction', 'instructions'])
/** Members that hold whole requests, as in batches. */
const REQUESTS: ReadonlySet<string> = new Set(['requests', 'request', 'generatecontentrequest', 'batch', 'inputconfig', 'params', 'body'])
/** Members inside a conversation that hold no text: names, ids, places and bytes. */
const STRUCTURE: ReadonlySet<string> = new Set([
  'type', 'role', 'id', 'name', 'index', 'status', 'model', 'toolcallid', 'tooluseid', 'callid', 'itemid', 'containerid', 'serverlabel', 'mediatype', 'mimetype',
  'detail', 'format', 'url', 'imageurl', 'fileid', 'fileuri', 'fileurl', 'filedata', 'inlinedata', 'inputaudio', 'audio', 'signature', 'thoughtsignature',
  'encryptedcontent', 'cachecontrol',
])
/** Members whose value is an object of the client or of a model: each string in it is text. */
const FREE: ReadonlyMap<string, TextKind> = new Map([
  ['input', 'tool_arguments'], ['args', 'tool_arguments'], ['arguments', 'tool_arguments'], ['parameters', 'tool_arguments'],
  ['variables', 'text'], ['response', 'tool_result'],
])
/** Types of what tools return: `tool_result`, `function_call_output`, `web_search_tool_result`. */
const RESULT = /(?:_result|_output)$/
/** A member of bytes in base64, or of text if the type beside it says so. */
const DATA = 'data'

/** Objects below this level are not searched for their role: each level reads its content once more. */
const MAX_LEVELS = 16
/** A request with more texts is not read. */
export const MAX_TEXTS = 20_000
const MAX_NAME_BYTES = 200
const MAX_ROLE = 32
/** Begins bytes in base64 that stand for a file. */
const DATA_URL = Buffer.from('"data:')
const BASE64 = Buffer.from(';base64,')
const MAX_DATA_URL_HEAD = 200

interface Place {
  readonly role: string
  readonly kind: TextKind
  /** true = each string is text. */
  readonly isFree: boolean
  readonly level: number
}

/**
 * Finds each text of a request wherever it stands: messages, instructions, tool arguments and results, documents. Works in every protocol,
 * because all of them name these members alike. Texts in base64 and names of members are not read.
 * @param body valid JSON @returns null = there are more than MAX_TEXTS texts
 */
export function requestTexts(body: Buffer): RequestText[] | null {
  const walk = new Walk(body)
  walk.request(new JsonCursor(body))
  return walk.texts.length > MAX_TEXTS ? null : walk.texts
}

/** The text at a place. */
export function textOf(body: Buffer, { start, end }: RequestText): string {
  return JSON.parse(body.toString('utf8', start, end)) as string
}

/** @param texts new texts by id; an id without a place is left out */
export function textEdits(places: ReadonlyMap<string, RequestText>, texts: ReadonlyMap<string, string>): Edit[] {
  return [...texts].flatMap(([id, text]) => {
    const place = places.get(id)
    return place === undefined ? [] : { start: place.start, end: place.end, bytes: Buffer.from(JSON.stringify(text)) }
  })
}

class Walk {
  readonly texts: RequestText[] = []
  readonly #body: Buffer

  constructor(body: Buffer) {
    this.#body = body
  }

  request(cursor: JsonCursor): void {
    if (!cursor.beginObject()) return void cursor.skip()
    while (cursor.nextMember()) {
      const name = this.#name(cursor)
      if (ROOTS.has(name)) this.#value(cursor, { role: SYSTEM_ROOTS.has(name) ? 'system' : 'user', kind: kindOfRoot(name), isFree: false, level: 0 })
      else if (!REQUESTS.has(name)) cursor.skip()
      else if (cursor.beginArray()) while (cursor.nextElement()) this.request(cursor)
      else this.request(cursor)
    }
  }

  #value(cursor: JsonCursor, place: Place): void {
    if (this.texts.length > MAX_TEXTS) return void cursor.skip()
    if (cursor.isString()) {
      cursor.skip()
      this.#text(cursor.valueStart, cursor.valueEnd, place)
    } else if (cursor.beginArray()) {
      while (cursor.nextElement()) this.#value(cursor, place)
    } else if (cursor.isObject()) {
      if (place.isFree) this.#freeObject(cursor, place)
      else this.#object(cursor, place)
    } else {
      cursor.skip()
    }
  }

  #freeObject(cursor: JsonCursor, place: Place): void {
    cursor.beginObject()
    while (cursor.nextMember()) this.#value(cursor, place)
  }

  #object(outer: JsonCursor, place: Place): void {
    if (place.level >= MAX_LEVELS) return this.#freeObject(outer, { ...place, isFree: true })
    outer.skip()
    const { valueStart, valueEnd } = outer
    // The role can stand behind the text.
    const { role, type } = this.#describe(new JsonCursor(this.#body, valueStart, valueEnd))
    const isResult = RESULT.test(type)
    const own: Place = {
      role: isResult ? 'tool' : role ?? place.role, level: place.level + 1, isFree: false,
      kind: isResult || role === 'tool' || role === 'function' ? 'tool_result' : type === 'document' ? 'document' : place.kind,
    }
    const cursor = new JsonCursor(this.#body, valueStart, valueEnd)
    cursor.beginObject()
    while (cursor.nextMember()) this.#member(cursor, own, type)
  }

  #member(cursor: JsonCursor, place: Place, type: string): void {
    const name = this.#name(cursor)
    const free = FREE.get(name)
    if (STRUCTURE.has(name) || (name === DATA && type !== 'text')) cursor.skip()
    else if (free !== undefined) this.#value(cursor, { ...place, kind: free, isFree: true, role: free === 'tool_result' ? 'tool' : place.role })
    else if (name === 'output') this.#value(cursor, { ...place, kind: 'tool_result', role: 'tool' })
    else this.#value(cursor, place)
  }

  #describe(cursor: JsonCursor): { readonly role: string | null, readonly type: string } {
    let role: string | null = null
    let type = ''
    cursor.beginObject()
    while (cursor.nextMember()) {
      const name = this.#name(cursor)
      const isString = cursor.isString()
      cursor.skip()
      if (!isString || cursor.valueEnd - cursor.valueStart > MAX_NAME_BYTES) continue
      if (name === 'role') role = String(cursor.parsed()).slice(0, MAX_ROLE)
      else if (name === 'type') type = String(cursor.parsed())
    }
    return { role, type }
  }

  #text(start: number, end: number, { role, kind }: Place): void {
    const isEmpty = end - start <= 2
    if (isEmpty || this.#isDataUrl(start, end)) return
    this.texts.push({ id: `t${this.texts.length + 1}`, role, kind, start, end })
  }

  #isDataUrl(start: number, end: number): boolean {
    if (this.#body.compare(DATA_URL, 0, DATA_URL.length, start, Math.min(end, start + DATA_URL.length)) !== 0) return false
    return this.#body.subarray(start, Math.min(end, start + MAX_DATA_URL_HEAD)).includes(BASE64)
  }

  /** The name of the last member, in lower case and without separators. */
  #name({ keyStart, keyEnd }: JsonCursor): string {
    if (keyEnd - keyStart > MAX_NAME_BYTES) return ''
    const name = this.#body.toString('utf8', keyStart, keyEnd)
    return loosely(name.includes('\\') ? String(JSON.parse(`"${name}"`)) : name)
  }
}

function kindOfRoot(name: string): TextKind {
  return name === 'documents' ? 'document' : 'text'
}
