import { GatewayError } from '../../base/errors.ts'
import { JsonCursor, parseJsonRange } from '../json/cursor.ts'
import { WatchedKeys } from '../json/watched-keys.ts'

/**
 * Members that name models. They match in any case, with or without separators. They name models to use if the first fails (OpenRouter's
 * `models`, Anthropic's and LiteLLM's `fallbacks`), models of tools and plugins (Anthropic's advisor, OpenAI's image generation), models
 * for transcription (`input_audio_transcription.model`), and models of a router (Vertex AI's `manualMode.modelName`).
 */
export const MODEL_MEMBERS = [
  'model', 'models', 'modelname', 'modelnames', 'modelid', 'modelids', 'fallbackmodel', 'fallbackmodels', 'draftmodel', 'transcriptionmodel',
  'fallbacks', 'contextwindowfallbacks', 'contentpolicyfallbacks',
] as const
/** The member by which a client lets the server choose the model (Vertex AI's `routingConfig.autoMode`). */
const AUTOMATIC = 'automode'
const NAMES: ReadonlySet<string> = new Set([...MODEL_MEMBERS, AUTOMATIC])
const OWN_MODEL = new WatchedKeys(['model'], ['model'])

/** Members of a known request that contain the client's own text or a schema. A member `model` inside them does not name a model. */
const TEXTS: ReadonlySet<string> = new Set([
  'inputschema', 'outputschema', 'jsonschema', 'schema', 'parametersjsonschema', 'responseschema', 'responsejsonschema', 'inputexamples', 'examples',
  'metadata', 'requestmetadata', 'labels', 'variables', 'arguments', 'args', 'logitbias', 'requests', 'generatecontentrequest',
])
/** Members that contain the conversation. Only tools inside its items are read. */
const CONVERSATION: ReadonlySet<string> = new Set([
  'messages', 'contents', 'content', 'parts', 'input', 'item', 'instructions', 'system', 'systeminstruction', 'prompt', 'query', 'documents',
])
const TOOLS = 'tools'
/** `input` is also the name of the settings of the input audio (`audio.input`). If it is an object, it is no conversation. */
const INPUT = 'input'
const PARAMETERS = 'parameters'
const MEMBERS = new WatchedKeys([], [], [...new Set([...NAMES, ...TEXTS, ...CONVERSATION, TOOLS, PARAMETERS])])
/** Members of an item in a conversation: its type, and members that may contain more items or tools. */
const ITEM_MEMBERS = new WatchedKeys(['type'], [], ['content', 'parts', 'item', 'output', TOOLS])

/** Maximum number of names. No other request is served while the names are checked. */
const MAX_NAMES = 1000
const MAX_NESTING = 100
/** Maximum bytes of a member's name in an error message. */
const MAX_NAME_BYTES = 200

/** A model that a request names in addition to the request's own model. */
export interface NamedModel {
  /** The name of the model; null = the server chooses the model. */
  readonly model: string | null
  /** The top-level member that contains the name. */
  readonly param: string
}

export interface NamedModelsOptions {
  /** false = the endpoint is unknown, so any member at any place may name a model. */
  readonly isKnown: boolean
  /** true if the caller itself checks the top-level model. */
  readonly skipsOwn: boolean
}

/**
 * Visits every model that the JSON text names. The text is a request, or a message of a session.
 * @param visit may throw
 * @throws GatewayError invalid_json for more than 1,000 names or more than 100 nested levels
 */
export function visitModels(bytes: Buffer, options: NamedModelsOptions, visit: (named: NamedModel) => void): void {
  new Walk(bytes, options, visit).value(new JsonCursor(bytes), { param: null, depth: 0, isName: false, listsNames: false, inTools: false })
}

type KeyBounds = Pick<JsonCursor, 'keyStart' | 'keyEnd'>

interface Place {
  /** Bounds of the top-level member's name; null = the value is the text itself. */
  readonly param: KeyBounds | null
  readonly depth: number
  /** true if the value belongs to a member that names models. */
  readonly isName: boolean
  /** true if an object may contain lists of names under any member, such as LiteLLM's `{ failed: [next] }`. */
  readonly listsNames: boolean
  readonly inTools: boolean
}

class Walk {
  readonly #bytes: Buffer
  readonly #options: NamedModelsOptions
  readonly #visit: (named: NamedModel) => void
  #count = 0

  constructor(bytes: Buffer, options: NamedModelsOptions, visit: (named: NamedModel) => void) {
    this.#bytes = bytes
    this.#options = options
    this.#visit = visit
  }

  value(cursor: JsonCursor, place: Place): void {
    const { param, depth, isName } = place
    if (depth > MAX_NESTING) throw new GatewayError('invalid_json', `the body is nested more than ${MAX_NESTING} levels deep`)
    if (cursor.beginObject()) {
      while (cursor.nextMember()) this.#member(cursor, place)
    } else if (cursor.beginArray()) {
      while (cursor.nextElement()) this.value(cursor, { ...place, depth: depth + 1 })
    } else {
      const isText = cursor.isString()
      if (cursor.skip() && isName && isText) this.#add(String(cursor.parsed()), param)
    }
  }

  #member(cursor: JsonCursor, place: Place): void {
    const { depth, listsNames, inTools } = place
    const { isKnown, skipsOwn } = this.#options
    const { keyStart, keyEnd } = cursor
    const found = MEMBERS.find(this.#bytes, keyStart, keyEnd)
    const name = found !== null && NAMES.has(found) ? found : null
    const inside = { param: place.param ?? { keyStart, keyEnd }, depth: depth + 1, isName: false, listsNames: false, inTools }
    if (depth === 0 && skipsOwn && name !== null && OWN_MODEL.find(this.#bytes, keyStart, keyEnd) !== null) {
      cursor.skip()
    } else if (name === AUTOMATIC) {
      if (cursor.skip() && cursor.parsed() !== null) this.#add(null, inside.param)
    } else if (name !== null) {
      // At a known endpoint, a member with a plural name is a list.
      const isRead = !isKnown || !name.endsWith('s') || cursor.isArray()
      if (isRead) this.value(cursor, { ...inside, isName: true, listsNames: name.endsWith('fallbacks') })
      else cursor.skip()
    } else if (listsNames && cursor.isArray()) {
      this.value(cursor, { ...inside, isName: true, listsNames: true })
    } else if (!isKnown) {
      this.value(cursor, inside)
    } else if (found !== null && (TEXTS.has(found) || (inTools && found === PARAMETERS))) {
      cursor.skip()
    } else if (found !== null && CONVERSATION.has(found) && !(found === INPUT && cursor.isObject())) {
      this.#conversation(cursor, inside)
    } else if (found !== TOOLS) {
      this.value(cursor, inside)
    } else if (cursor.isArray()) {
      this.value(cursor, { ...inside, inTools: true })
    } else {
      cursor.skip()
    }
  }

  /** Reads only the tools inside items that have a type. */
  #conversation(cursor: JsonCursor, place: Place): void {
    const inside = { ...place, depth: place.depth + 1 }
    if (inside.depth <= MAX_NESTING && cursor.beginArray()) {
      while (cursor.nextElement()) this.#conversation(cursor, inside)
    } else if (inside.depth <= MAX_NESTING && cursor.beginObject()) {
      this.#item(cursor, inside)
    } else {
      cursor.skip()
    }
  }

  #item(cursor: JsonCursor, inside: Place): void {
    const tools: JsonCursor[] = []
    let hasType = false
    while (cursor.nextMember()) {
      const found = ITEM_MEMBERS.find(this.#bytes, cursor.keyStart, cursor.keyEnd)
      if (found !== null && found !== 'type' && found !== TOOLS) {
        this.#conversation(cursor, inside)
        continue
      }
      hasType ||= found === 'type'
      const isTools = found === TOOLS && cursor.isArray()
      if (cursor.skip() && isTools) tools.push(new JsonCursor(this.#bytes, cursor.valueStart, cursor.valueEnd))
    }
    if (hasType) for (const list of tools) this.value(list, { ...inside, inTools: true })
  }

  #add(model: string | null, member: KeyBounds | null): void {
    const param = member === null ? '' : this.#nameOf(member)
    if (++this.#count > MAX_NAMES) throw new GatewayError('invalid_json', `the body names more than ${MAX_NAMES} models`, { param })
    this.#visit({ model, param })
  }

  #nameOf({ keyStart, keyEnd }: KeyBounds): string {
    const quoted = Buffer.from(`"${this.#bytes.toString('utf8', keyStart, Math.min(keyEnd, keyStart + MAX_NAME_BYTES))}"`)
    return String(parseJsonRange(quoted, 0, quoted.length))
  }
}
