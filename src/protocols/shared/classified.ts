import type { EndpointName, ProtocolName } from './names.ts'

/** What the request body of an endpoint is due to be; bytes are not looked into, whatever they are called. */
export type BodyKind = 'json' | 'form' | 'json_or_form' | 'any' | 'bytes' | 'none'

export interface Endpoint {
  readonly name: EndpointName
  readonly protocol: ProtocolName
  /** Methods that the path takes, as in an Allow header. */
  readonly methods: readonly string[]
  readonly body: BodyKind
  /** Where the model's name stands; `deployment`: in the path, whatever the body names. */
  readonly modelIn: 'body' | 'path' | 'deployment' | 'query' | 'none'
  /** Without a model the request is refused, whatever the routes say. */
  readonly modelRequired: boolean
  /** It takes requests of its own models, in its body or in a file that it names; absent = no. */
  readonly isBatch?: true
}

/** A path, recognised. */
export interface Classified {
  readonly endpoint: Endpoint
  /** The model as the path names it, percent-decoded; null where it does not. */
  readonly pathModel: string | null
  /** Where the model's name stands in the path, for a rename. */
  readonly pathModelStart: number
  readonly pathModelEnd: number
}

export const ANY_METHOD = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const POST = ['POST'] as const
export const READ = ['GET', 'HEAD'] as const

export const MODEL_CARD: Record<'chat' | 'generate', Endpoint> = {
  chat: modelCard('chat'),
  generate: modelCard('generate'),
}

/** What is not known by name. */
export const OTHER: Record<ProtocolName, Classified> = {
  chat: withoutPathModel(otherEndpoint('chat')),
  messages: withoutPathModel(otherEndpoint('messages')),
  generate: withoutPathModel(otherEndpoint('generate')),
}

/** Without a slash at the end, or the parameters of its last part. */
export function trimPath(path: string): string {
  const parameters = path.indexOf(';', path.lastIndexOf('/') + 1)
  if (parameters !== -1) return path.slice(0, parameters)
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** Of what a model is: its name is all that stands behind the prefix. */
export function modelCardPath(path: string, prefix: string, endpoint: Endpoint): Classified {
  if (path.length === prefix.length) return OTHER[endpoint.protocol]
  return withPathModel(endpoint, path, prefix.length, path.length)
}

/** The model's name stands in the path. */
export function withPathModel(endpoint: Endpoint, path: string, start: number, end: number): Classified {
  const raw = path.slice(start, end)
  // The path was checked for well-formed escapes when it was normalised.
  const pathModel = raw.includes('%') ? decodeURIComponent(raw) : raw
  return { endpoint, pathModel, pathModelStart: start, pathModelEnd: end }
}

/** The path has no model. */
export function withoutPathModel(endpoint: Endpoint): Classified {
  return { endpoint, pathModel: null, pathModelStart: 0, pathModelEnd: 0 }
}

function modelCard(protocol: 'chat' | 'generate'): Endpoint {
  return { name: 'models.get', protocol, methods: READ, body: 'none', modelIn: 'path', modelRequired: false }
}

export function otherEndpoint(protocol: ProtocolName): Endpoint {
  return {
    name: 'other', protocol, methods: ANY_METHOD, body: 'any', modelIn: 'body', modelRequired: false,
  }
}
