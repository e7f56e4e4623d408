import type { Classified, ClientFormat, Endpoint } from './protocol.ts'
import { boundPlaces } from './bound-places.ts'

const ANY_METHOD = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const POST = ['POST'] as const
export const READ = ['GET', 'HEAD'] as const

type EndpointBasics = Pick<Endpoint, 'name' | 'format'>
export type EndpointOptions = Partial<Omit<Endpoint, 'outputBounds'>> & {
  /** Paths of the members that bound the output. */
  readonly outputBounds?: readonly string[]
}

/** Creates an endpoint from its properties and defaults; all endpoints have their members in the same order. */
export function defineEndpoint(about: EndpointBasics & EndpointOptions): Endpoint {
  return {
    name: about.name,
    protocol: about.format.protocol,
    format: about.format,
    formatByCaller: about.formatByCaller ?? false,
    methods: about.methods ?? POST,
    body: about.body ?? 'json',
    modelIn: about.modelIn ?? 'body',
    modelRequired: about.modelRequired ?? false,
    modelAliases: about.modelAliases ?? [],
    isBatch: about.isBatch ?? false,
    ownResponse: about.ownResponse ?? null,
    session: about.session ?? null,
    metering: about.metering ?? null,
    prompt: about.prompt ?? null,
    responseMembers: about.responseMembers ?? null,
    generatesTokens: about.generatesTokens ?? true,
    outputBounds: boundPlaces(about.outputBounds ?? []),
    boundsThinking: about.boundsThinking ?? false,
    tokenCount: about.tokenCount ?? null,
    respondsToEachPrompt: about.respondsToEachPrompt ?? false,
    supportsBackground: about.supportsBackground ?? false,
    usageOption: about.usageOption ?? null,
    respondsWithJson: about.respondsWithJson ?? false,
    streamsByPath: about.streamsByPath ?? false,
    usage: about.usage ?? null,
    createMeter: about.createMeter ?? null,
    hasLargeEvents: about.hasLargeEvents ?? false,
    streams: about.streams ?? null,
  }
}

/** An endpoint without a known name: it is forwarded unchanged. */
export function otherEndpoint(format: ClientFormat, about: EndpointOptions = {}): Endpoint {
  return defineEndpoint({ name: 'other', format, methods: ANY_METHOD, body: 'any', metering: 'unmetered', ...about })
}

/** The list of models, which the gateway itself returns. */
export function modelListEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.list', format, formatByCaller, methods: READ, body: 'none', modelIn: 'none', ownResponse: 'model_list',
  })
}

/** One entry of the list of models. */
export function modelCardEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.get', format, formatByCaller, methods: READ, body: 'none', modelIn: 'path', ownResponse: 'model_card',
  })
}

/** Removes a final slash, or the parameters of the last part. */
export function trimPath(path: string): string {
  const parameters = path.indexOf(';', path.lastIndexOf('/') + 1)
  if (parameters !== -1) return path.slice(0, parameters)
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** Classifies the path of a model's description: its name is everything after the prefix. @returns null = no name */
export function modelCardPath(path: string, prefix: string, endpoint: Endpoint): Classified | null {
  return path.length === prefix.length ? null : withPathModel(endpoint, path, prefix.length, path.length)
}

/** An endpoint with the model's name in the path. */
export function withPathModel(endpoint: Endpoint, path: string, start: number, end: number): Classified {
  const raw = path.slice(start, end)
  // The escapes were checked when the path was normalised.
  const pathModel = raw.includes('%') ? decodeURIComponent(raw) : raw
  return { endpoint, pathModel, pathModelStart: start, pathModelEnd: end }
}

/** An endpoint without a model in the path. */
export function withoutPathModel(endpoint: Endpoint): Classified {
  return { endpoint, pathModel: null, pathModelStart: 0, pathModelEnd: 0 }
}
