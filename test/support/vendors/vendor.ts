import type { IncomingHttpHeaders } from 'node:http'
import type { Test } from 'tap'
import { asList, asObject } from '../../../src/protocols/neutral/json.ts'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { sendJson } from '../token-server.ts'
import { bodyOf, startUpstream } from '../upstream.ts'

/** The output of the scripted model in one turn. */
export interface Turn {
  readonly thinking?: string
  readonly text?: string
  readonly calls?: readonly Call[]
}

export interface Call {
  readonly name: string
  /** Of a tool that takes plain text, one member with the text. */
  readonly input: JsonObject
  /** The tool takes plain text, where the protocol has such tools. */
  readonly isFreeform?: boolean
  /** It searches for tools, where the protocol has a form of its own for that. */
  readonly isToolSearch?: boolean
  /** Of the tool, where the protocol has namespaces; elsewhere the name has both. */
  readonly namespace?: string
}

/** The parts of a request that a script reads. */
export interface Conversation {
  /** Names of the tools that the client offers. */
  readonly tools: readonly string[]
  /** How many turns of the model have called tools so far. */
  readonly rounds: number
  /** Results of the last calls, in the order of the calls, as text. */
  readonly results: readonly string[]
}

/** Collects the errors that the API of a vendor finds in a request. */
export class Faults {
  readonly found: string[] = []

  expect(isRight: boolean, fault: string): void {
    if (!isRight) this.found.push(fault)
  }

  /** All keys of an object are known. */
  known(object: JsonObject | null, keys: ReadonlySet<string>, where: string): void {
    for (const key of Object.keys(object ?? {})) this.expect(keys.has(key), `${where}: unknown field ${key}`)
  }
}

export interface Received {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: JsonObject
}

/** The API of a vendor: which requests it accepts, and how it writes a turn. */
export interface Vendor {
  /** As `speaks` lists it. */
  readonly protocol: string
  /** Reads a request as strictly as the vendor does. */
  read(received: Received, faults: Faults): Conversation
  /** Is the response a stream? */
  isStream(received: Received): boolean
  body(turn: Turn, number: number): JsonObject
  /** The response as events. */
  stream(turn: Turn, number: number): string | Buffer
  /** Absent = server-sent events. */
  readonly streamType?: string
  error(message: string): JsonObject
  /** false = its usage does not tell tokens of reasoning. */
  readonly reportsReasoning?: boolean
  /** HTTP status of its errors; absent = 400. */
  readonly status?: number
  /** The model's name, by which the gateway knows what it accepts; absent = any other. */
  readonly model?: string
  /** Members of the upstream besides `speaks`; absent = `url`. */
  settings?(url: string): string
  /** What the operator says that the model accepts, where that depends on the vendor's host. */
  readonly accepts?: string
  /** The number of tokens, of a request that asks for it; null = it asks for a turn. */
  count?(received: Received): JsonObject | null
  /** The error with which it refuses a request that is not wrong, for clients to send another; absent = it refuses none. */
  refusal?(received: Received): JsonObject | null
}

/** The same vendor with a model that refuses more. @param check of a request's body */
export function withModel(vendor: Vendor, more: Partial<Vendor> & { readonly model: string }, check: (body: JsonObject, faults: Faults) => void): Vendor {
  return {
    ...vendor,
    ...more,
    read: (received, faults) => {
      check(received.body, faults)
      return vendor.read(received, faults)
    },
  }
}

/** Every turn reports the same usage. Input has the cached tokens, output the reasoning. */
export const USAGE = { input: 1000, cached: 600, output: 50, reasoning: 20 } as const

export interface ScriptedUpstream {
  readonly url: string
  /** Requests for a turn. */
  readonly requests: readonly Received[]
  /** Errors that the vendor would refuse. */
  readonly faults: readonly string[]
}

/** An upstream with the protocol of a vendor and a model that follows a script. */
export async function startVendor(t: Test, vendor: Vendor, script: (conversation: Conversation, received: Received) => Turn): Promise<ScriptedUpstream> {
  const requests: Received[] = []
  const found: string[] = []
  const { url } = await startUpstream(t, async (req, res) => {
    const text = (await bodyOf(req)).toString()
    const received = { path: req.url ?? '', headers: req.headers, body: (text === '' ? {} : JSON.parse(text)) as JsonObject }
    const counted = vendor.count?.(received) ?? null
    if (counted !== null) {
      sendJson(res, 200, counted)
      return
    }
    requests.push(received)
    const number = requests.length
    const refusal = vendor.refusal?.(received) ?? null
    if (refusal !== null) {
      sendJson(res, 400, refusal)
      return
    }
    const faults = new Faults()
    const conversation = vendor.read(received, faults)
    if (faults.found.length > 0) {
      found.push(...faults.found.map(fault => `request ${number}: ${fault}`))
      sendJson(res, vendor.status ?? 400, vendor.error(faults.found.join('; ')))
      return
    }
    const turn = script(conversation, received)
    if (vendor.isStream(received)) res.writeHead(200, { 'content-type': vendor.streamType ?? 'text/event-stream' }).end(vendor.stream(turn, number))
    else sendJson(res, 200, vendor.body(turn, number))
  })
  return { url, requests, faults: found }
}

/** A turn without its thinking. */
export function spoken({ text, calls }: Turn): Turn {
  return { ...text !== undefined && { text }, ...calls && { calls } }
}

/** The name of a tool in protocols without namespaces. */
export function fullName({ name, namespace }: Call): string {
  return namespace === undefined ? name : `${namespace}__${name}`
}

/** The members of a list that are objects. */
export function objects(value: unknown): JsonObject[] {
  return asList(value).map(asObject).filter(one => one !== null)
}

/** A text in two pieces, as streams carry it. */
export function pieces(text: string): string[] {
  const middle = Math.ceil(text.length / 2)
  return [text.slice(0, middle), text.slice(middle)].filter(piece => piece !== '')
}

export function words(list: string): ReadonlySet<string> {
  return new Set(list.split(' '))
}
