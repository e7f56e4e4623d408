import { isObject } from '../../base/is-object.ts'
import { parseBounded } from '../../base/json-size.ts'

/** What a hook decided. docs/public/hook.schema.json describes the reply that it is read from. */
export interface HookReply {
  readonly action: 'allow' | 'refuse' | 'replace' | 'tag'
  /** For the client of a refused request; null = none. */
  readonly message: string | null
  /** New texts by the id of the text. */
  readonly texts: ReadonlyMap<string, string>
  /** Parameters of the request to set; null as a value removes the parameter. */
  readonly parameters: ReadonlyMap<string, unknown>
  /** Tags of the request by their name. */
  readonly tags: ReadonlyMap<string, string>
}

/** What a hook was asked, as far as its reply depends on it. */
export interface AskedOf {
  readonly on: 'request' | 'response'
  /** The ids of the texts that the hook was sent. */
  readonly ids: ReadonlySet<string>
  /** true = the hook may replace what it was asked about. */
  readonly replaces: boolean
}

export const ACTIONS = ['allow', 'refuse', 'replace', 'tag'] as const
export const MAX_MESSAGE = 1_000
export const MAX_TAGS = 20
export const MAX_TAG_NAME = 64
export const MAX_PARAMETERS = 50

/** Control, invisible and broken characters: a message ends up in headers, logs and terminals. */
const UNREADABLE = /[\p{C}\p{Zl}\p{Zp}\ufffd]+/gu

const NONE: HookReply = { action: 'allow', message: null, texts: new Map(), parameters: new Map(), tags: new Map() }

/**
 * Reads a reply. Unknown members are ignored, so that later versions can add some. All else that the schema does not allow makes the whole
 * reply invalid: a replacement that is left out would let pass what the hook wanted to hide.
 * @returns a text: why the reply is invalid
 */
export function readReply(body: Buffer, asked: AskedOf): HookReply | string {
  if (body.length === 0) return NONE
  let raw: unknown
  try {
    raw = parseBounded(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch (error) {
    // The error of JSON.parse quotes the text.
    return error instanceof RangeError ? error.message : 'the reply is not JSON in UTF-8'
  }
  if (!isObject(raw)) return 'the reply is not a JSON object'
  const action = ACTIONS.find(known => known === raw['action'])
  if (action === undefined) return `action is none of ${ACTIONS.join(', ')}`
  if (action === 'replace' && !asked.replaces) return 'action is replace, and nothing can be replaced here'
  const message = readMessage(raw['message'], action)
  if (message instanceof Fault) return message.text
  const texts = readTexts(raw['texts'], action, asked)
  if (texts instanceof Fault) return texts.text
  const parameters = readParameters(raw['parameters'], action, asked)
  if (parameters instanceof Fault) return parameters.text
  const tags = readTags(raw['tags'], action, asked)
  if (tags instanceof Fault) return tags.text
  if (action === 'replace' && texts.size + parameters.size === 0) return 'action is replace, and there are neither texts nor parameters'
  return { action, message, texts, parameters, tags }
}

class Fault {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

function readMessage(raw: unknown, action: HookReply['action']): string | null | Fault {
  if (raw === undefined || raw === null) return null
  if (action !== 'refuse') return new Fault(`message belongs to action refuse, not ${action}`)
  if (typeof raw !== 'string') return new Fault('message is not a string')
  if (raw.length > MAX_MESSAGE) return new Fault(`message has more than ${MAX_MESSAGE} characters`)
  const text = raw.replace(UNREADABLE, ' ').trim()
  return text === '' ? null : text
}

function readTexts(raw: unknown, action: HookReply['action'], { ids }: AskedOf): ReadonlyMap<string, string> | Fault {
  if (raw === undefined || raw === null) return NONE.texts
  if (action !== 'replace') return new Fault(`texts belong to action replace, not ${action}`)
  if (!Array.isArray(raw)) return new Fault('texts is not a list')
  if (raw.length > ids.size) return new Fault('there are more texts than were sent')
  const texts = new Map<string, string>()
  for (const entry of raw as unknown[]) {
    if (!isObject(entry)) return new Fault('a text is not an object')
    const { id, text } = entry
    if (typeof id !== 'string' || !ids.has(id)) return new Fault('a text has an id that was not sent')
    if (texts.has(id)) return new Fault(`the text ${id} is there twice`)
    if (typeof text !== 'string') return new Fault(`the text ${id} is not a string`)
    if (!text.isWellFormed()) return new Fault(`the text ${id} has a broken character`)
    texts.set(id, text)
  }
  return texts
}

function readParameters(raw: unknown, action: HookReply['action'], { on }: AskedOf): ReadonlyMap<string, unknown> | Fault {
  if (raw === undefined || raw === null) return NONE.parameters
  if (action !== 'replace') return new Fault(`parameters belong to action replace, not ${action}`)
  if (on !== 'request') return new Fault('a response has no parameters')
  if (!isObject(raw)) return new Fault('parameters is not an object')
  const parameters = new Map(Object.entries(raw))
  return parameters.size > MAX_PARAMETERS ? new Fault(`there are more than ${MAX_PARAMETERS} parameters`) : parameters
}

function readTags(raw: unknown, action: HookReply['action'], { on }: AskedOf): ReadonlyMap<string, string> | Fault {
  if (raw === undefined || raw === null) return action === 'tag' ? new Fault('action is tag, and there are no tags') : NONE.tags
  if (action === 'refuse') return new Fault('tags do not belong to action refuse')
  if (on !== 'request') return new Fault('tags come too late: a response is already counted')
  if (!isObject(raw)) return new Fault('tags is not an object')
  const tags = new Map<string, string>()
  for (const [name, value] of Object.entries(raw)) {
    if (typeof value !== 'string') return new Fault('a tag is not a string')
    if (name.length > MAX_TAG_NAME) return new Fault(`the name of a tag has more than ${MAX_TAG_NAME} characters`)
    tags.set(name, value)
  }
  return tags.size > MAX_TAGS ? new Fault(`there are more than ${MAX_TAGS} tags`) : tags
}
