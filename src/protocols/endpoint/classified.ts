import type { BoundPlaces, Classified, ClientFormat, Endpoint } from './protocol.ts'

const ANY_METHOD = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const POST = ['POST'] as const
export const READ = ['GET', 'HEAD'] as const

export type EndpointOptions = Partial<Omit<Endpoint, 'protocol' | 'outputBounds'>> & {
  /** Paths of the members that limit the number of output tokens. */
  readonly outputBounds?: readonly string[]
}

const DEFAULTS: Omit<Endpoint, 'name' | 'protocol' | 'format'> = {
  formatByCaller: false, methods: POST, body: 'json', modelIn: 'body', modelRequired: false, modelAliases: [], isBatch: false,
  ownResponse: null, session: null,
  metering: null, prompt: null, responseMembers: null, generatesTokens: true, outputBounds: boundPlaces([]), boundsThinking: false,
  tokenCount: null, respondsToEachPrompt: false, supportsBackground: false, usageOption: null,
  respondsWithJson: false, streamsByPath: false, usage: null, createMeter: null, hasLargeEvents: false, streams: null,
}

/** Creates an endpoint. All endpoints have their members in the same order. */
export function defineEndpoint(about: Pick<Endpoint, 'name' | 'format'> & EndpointOptions): Endpoint {
  const { name, format, outputBounds = [], ...others } = about
  return { name, protocol: format.protocol, format, ...DEFAULTS, ...others, outputBounds: boundPlaces(outputBounds) }
}

function boundPlaces(paths: readonly string[]): BoundPlaces {
  return { paths: new Set(paths), names: new Set(paths.flatMap(namesAlong)) }
}

function namesAlong(path: string): string[] {
  const names = path.replace(/[_-]/g, '').toLowerCase().split('.')
  return names.map((_, at) => names.slice(0, at + 1).join('.'))
}

/** An endpoint without a known name: its requests are forwarded unchanged. */
export function otherEndpoint(format: ClientFormat, about: EndpointOptions = {}): Endpoint {
  return defineEndpoint({ name: 'other', format, methods: ANY_METHOD, body: 'any', metering: 'unmetered', ...about })
}

/** An endpoint that lists models: the gateway itself responds. */
export function modelListEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.list', format, formatByCaller, methods: READ, body: 'none', modelIn: 'none', ownResponse: 'model_list',
  })
}

export function modelCardEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.get', format, formatByCaller, methods: READ, body: 'none', modelIn: 'path', ownResponse: 'model_card',
  })
}

/** Removes the final slash of a path, or the parameters after a semicolon in the last part. */
export function trimPath(path: string): string {
  const parameters = path.indexOf(';', path.lastIndexOf('/') + 1)
  if (parameters !== -1) return path.slice(0, parameters)
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** Classifies the path of a model's description. The text after the prefix is the model's name. @returns null = the path has no name */
export function modelCardPath(path: string, prefix: string, endpoint: Endpoint): Classified | null {
  return path.length === prefix.length ? null : withPathModel(endpoint, path, prefix.length, path.length)
}

export function withPathModel(endpoint: Endpoint, path: string, start: number, end: number): Classified {
  const raw = path.slice(start, end)
  // `decodeURIComponent` cannot throw: the escapes were checked when the path was normalised.
  const pathModel = raw.includes('%') ? decodeURIComponent(raw) : raw
  return { endpoint, pathModel, pathModelStart: start, pathModelEnd: end }
}

export function withoutPathModel(endpoint: Endpoint): Classified {
  return { endpoint, pathModel: null, pathModelStart: 0, pathModelEnd: 0 }
}
