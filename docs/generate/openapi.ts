import type { OpenAPIV3_1 } from 'openapi-types'
import { knownEndpoints } from '../../src/protocols/classify-path.ts'
import { isTranslated } from '../../src/protocols/translate.ts'
import type { BodyKind, Endpoint } from '../../src/protocols/endpoint/protocol.ts'
import { SCHEMAS } from './openapi-schemas.ts'

/** What an endpoint is for, and the shapes that are known of it. */
interface About {
  readonly summary: string
  readonly request?: string
  readonly response?: string
  /** It responds with server-sent events if the request asks for them. */
  readonly streams?: true
  /** Media types of its responses besides JSON and events. */
  readonly types?: readonly string[]
  /** It never responds with JSON. */
  readonly noJson?: true
  readonly query?: readonly (readonly [name: string, meaning: string])[]
  readonly headers?: readonly (readonly [name: string, meaning: string])[]
}

const BETA = ['beta', 'true turns on beta features of the protocol; forwarded unchanged'] as const
const VERSION = ['anthropic-version', 'version of the protocol, YYYY-MM-DD; forwarded unchanged'] as const

const ABOUT: Readonly<Record<string, About>> = {
  'chat.completions': {
    summary: 'Chat completion', request: 'ChatRequest', response: 'ChatResponse', streams: true,
  },
  'completions': { summary: 'Text completion, the older form', streams: true },
  'responses': { summary: 'Response; also as a WebSocket if the upstream accepts it', streams: true },
  'responses.compact': { summary: 'Compact a conversation' },
  'responses.input_tokens': { summary: 'Count the tokens of a prompt' },
  'decisions': { summary: 'Decisions about an input, each with its probability' },
  'embeddings': { summary: 'Embeddings' },
  'images.generations': { summary: 'Make an image', streams: true },
  'images.edits': { summary: 'Change an image', streams: true },
  'audio.transcriptions': { summary: 'Speech to text', streams: true, types: ['text/plain'] },
  'audio.translations': { summary: 'Speech to English text', types: ['text/plain'] },
  'audio.speech': { summary: 'Text to speech', streams: true, types: ['audio/*'], noJson: true },
  'realtime': {
    summary: 'Realtime session over a WebSocket; 426 without one', query: [['model', 'the model of the session']],
  },
  'messages': { summary: 'Message', request: 'MessagesRequest', streams: true, query: [BETA], headers: [VERSION] },
  'messages.count_tokens': {
    summary: 'Count the tokens of a message', request: 'CountTokensRequest', query: [BETA], headers: [VERSION],
  },
  'generate.content': { summary: 'Generate content', request: 'GenerateRequest' },
  'generate.stream': {
    summary: 'Generate content as a stream', request: 'GenerateRequest', streams: true,
    query: [['alt', 'sse for server-sent events; default: one JSON array']],
  },
  'generate.count_tokens': { summary: 'Count the tokens of a prompt' },
  'generate.embed': { summary: 'Embedding' },
  'generate.batch_embed': { summary: 'Several embeddings' },
  'interactions': { summary: 'Interaction with a model or an agent', streams: true },
  'models.list': { summary: 'Models that the key can use', response: 'ModelList' },
  'models.get': { summary: 'One model that the key can use' },
  'status': { summary: 'Status: 200 while the gateway takes requests, otherwise 503', response: 'Status' },
}

const ERROR_SHAPES: Readonly<Record<string, string>> = {
  chat: 'ChatError', responses: 'ChatError', messages: 'MessagesError', generate: 'GenerateError',
}

/** Headers of every response, and of those from an upstream. */
export const OWN: readonly string[] = ['x-gateway-request-id', 'x-gateway-version', 'via']
const FORWARDED: readonly string[] = ['x-gateway-upstream', 'x-gateway-attempts']

const TAGS: Readonly<Record<string, string>> = {
  chat: 'Chat completions', responses: 'Responses', messages: 'Messages', generate: 'Generate content',
}

/** The API that clients use, as an OpenAPI document: paths and methods are those of src/protocols/classify-path.ts. */
export function openApi(): OpenAPIV3_1.Document {
  const paths: Record<string, OpenAPIV3_1.PathItemObject> = {}
  for (const { path, endpoint } of knownEndpoints()) {
    paths[path] = Object.fromEntries(endpoint.methods.map(method => [
      method.toLowerCase(), operation(path, method, endpoint, aboutOf(endpoint)),
    ]))
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Model Gateway',
      version: 'v1',
      description: 'The API that clients use. Bodies are those of the three protocols. The gateway reads the members ' +
        'that are named here and forwards all others unchanged.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: 'http://127.0.0.1:8080', description: 'server.listen of gateway.yaml' }],
    security: [{ bearer: [] }, { apiKey: [] }, { googleKey: [] }, { azureKey: [] }, { queryKey: [] }],
    tags: [...Object.values(TAGS), 'Gateway'].map(name => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        googleKey: { type: 'apiKey', in: 'header', name: 'x-goog-api-key' },
        azureKey: { type: 'apiKey', in: 'header', name: 'api-key' },
        queryKey: { type: 'apiKey', in: 'query', name: 'key' },
      },
      headers: {
        'x-gateway-request-id': { description: 'The id of the request. Quote it when you report a problem.', schema: { type: 'string' } },
        'x-gateway-version': { description: 'Version of the gateway.', schema: { type: 'string' } },
        'via': { description: 'The gateway adds itself here.', schema: { type: 'string' } },
        'x-gateway-upstream': { description: 'The upstream that sent the response. Sent with server.reveal_upstream only.', schema: { type: 'string' } },
        'x-gateway-attempts': {
          description: 'The number of attempts, including this one. Sent with server.reveal_upstream only.', schema: { type: 'integer' },
        },
        'x-gateway-translated': {
          description: "The client's protocol and the upstream's, messages->chat, if the request was translated.", schema: { type: 'string' },
        },
        'x-gateway-queued-ms': {
          description: 'Milliseconds that the request waited in queues; absent if it did not wait.', schema: { type: 'integer' },
        },
        'x-gateway-dropped': {
          description: 'The fields of a translated request that the upstream did not get, separated by commas.', schema: { type: 'string' },
        },
        'x-gateway-estimated': {
          description: 'true: the gateway counted the tokens itself, because the upstream cannot.', schema: { type: 'string', enum: ['true'] },
        },
      },
      schemas: SCHEMAS,
    },
  }
}

function aboutOf({ name }: Endpoint): About {
  const about = ABOUT[name]
  if (about === undefined) throw new Error(`docs/generate/openapi.ts does not describe the endpoint '${name}'`)
  return about
}

function operation(path: string, method: string, endpoint: Endpoint, about: About): OpenAPIV3_1.OperationObject {
  const { name, protocol, body } = endpoint
  const isOwn = name === 'status' || name.startsWith('models.')
  return {
    operationId: [name, protocol, ...method === 'GET' || method === 'POST' ? [] : [method.toLowerCase()]].join('.'),
    summary: about.summary,
    tags: [isOwn ? 'Gateway' : TAGS[protocol]],
    ...name === 'status' && { security: [] },
    parameters: parameters(path, about),
    ...body !== 'none' && { requestBody: { required: true, content: requestContent(body, about) } },
    responses: {
      ...name === 'realtime'
        ? { 101: { description: 'The WebSocket.', headers: headers([...OWN, ...FORWARDED]) } }
        : {
            200: {
              description: 'The response.',
              headers: headers(isOwn ? OWN : [...OWN, ...FORWARDED, ...translationHeaders(endpoint)]),
              content: responseContent(about),
            },
          },
      ...name === 'status' && { 503: { description: 'The gateway is shutting down.', content: json('Status') } },
      default: {
        description: 'An error of the gateway in the format of the protocol, or an unchanged error of the upstream.',
        headers: headers(OWN),
        content: json(ERROR_SHAPES[protocol]),
      },
    },
  }
}

/** Headers that a response has if its upstream speaks another protocol. */
function translationHeaders(endpoint: Endpoint): readonly string[] {
  if (endpoint.tokenCount !== null) return ['x-gateway-estimated']
  return isTranslated(endpoint) || endpoint.metering === 'embedding' ? ['x-gateway-translated', 'x-gateway-dropped'] : []
}

function parameters(path: string, { query = [], headers = [] }: About): OpenAPIV3_1.ParameterObject[] {
  const text = { type: 'string' } as const
  return [
    ...path.includes('{model}')
      ? [{ name: 'model', in: 'path', required: true, schema: text, description: 'The model.' }]
      : [],
    ...query.map(([name, description]) => ({ name, in: 'query', schema: text, description })),
    ...headers.map(([name, description]) => ({ name, in: 'header', schema: text, description })),
  ]
}

function requestContent(kind: BodyKind, { request }: About): Record<string, OpenAPIV3_1.MediaTypeObject> {
  const form = { 'multipart/form-data': { schema: { type: 'object' } } } as const
  const asJson = json(request ?? 'AnyRequest')
  return kind === 'form' ? form : kind === 'json_or_form' ? { ...asJson, ...form } : asJson
}

function responseContent(
  { response, streams, types = [], noJson }: About,
): Record<string, OpenAPIV3_1.MediaTypeObject> {
  return {
    ...!noJson && json(response ?? 'AnyResponse'),
    ...Object.fromEntries(types.map(type => [type, {}])),
    ...streams && { 'text/event-stream': { schema: { type: 'string' } } },
  }
}

function json(schema: string): Record<string, OpenAPIV3_1.MediaTypeObject> {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } }
}

function headers(names: readonly string[]): Record<string, OpenAPIV3_1.ReferenceObject> {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}
