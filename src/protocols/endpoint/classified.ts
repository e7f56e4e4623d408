import type { Classified, ClientFormat, Endpoint } from './protocol.ts'

const ANY_METHOD = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export const POST = ['POST'] as const
export const READ = ['GET', 'HEAD'] as const

type EndpointBasics = Pick<Endpoint, 'name' | 'format'>

/** An endpoint that is what is said of it; all have their members in one order, whatever is said. */
export function defineEndpoint(about: EndpointBasics & Partial<Endpoint>): Endpoint {
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
    outputBounds: about.outputBounds ?? [],
    boundsThinking: about.boundsThinking ?? false,
    tokenCount: about.tokenCount ?? null,
    answersEachPrompt: about.answersEachPrompt ?? false,
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

/** What is not known by name: it is forwarded as it is. */
export function otherEndpoint(format: ClientFormat, about: Partial<Endpoint> = {}): Endpoint {
  return defineEndpoint({ name: 'other', format, methods: ANY_METHOD, body: 'any', metering: 'unmetered', ...about })
}

/** The list of models, which the gateway makes itself. */
export function modelListEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.list', format, formatByCaller, methods: READ, body: 'none', modelIn: 'none', ownResponse: 'model_list',
  })
}

/** One entry of the list. */
export function modelCardEndpoint(format: ClientFormat, formatByCaller: boolean): Endpoint {
  return defineEndpoint({
    name: 'models.get', format, formatByCaller, methods: READ, body: 'none', modelIn: 'path', ownResponse: 'model_card',
  })
}

/** Without a slash at the end, or the parameters of its last part. */
export function trimPath(path: string): string {
  const parameters = path.indexOf(';', path.lastIndexOf('/') + 1)
  if (parameters !== -1) return path.slice(0, parameters)
  return path.endsWith('/') ? path.slice(0, -1) : path
}

/** Of what a model is: its name is all that stands behind the prefix. @returns null where there is no name */
export function modelCardPath(path: string, prefix: string, endpoint: Endpoint): Classified | null {
  return path.length === prefix.length ? null : withPathModel(endpoint, path, prefix.length, path.length)
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
