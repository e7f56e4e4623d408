import type { OpenAPIV3_1 } from 'openapi-types'
import { code, generatedFrom, plain, table } from './markdown.ts'
import { OWN } from './openapi.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** docs/reference/http-api.md: the same as the OpenAPI document, for people. */
export function httpApiPage(api: OpenAPIV3_1.Document): string {
  const sections = (api.tags ?? []).map(({ name }) => [
    `## ${name}`, table(['Request', 'Purpose', 'Body', 'Response'], rowsOf(api, name)), parametersOf(api, name),
  ].filter(part => part !== '').join('\n\n'))
  return `${generatedFrom('src/protocols/classify-path.ts')}

# HTTP API

${plain(api.info.description ?? '')}

The OpenAPI 3.1 document: <a href="../openapi.json" target="_self">openapi.json</a>.

## Paths

| Path | What the gateway does |
|---|---|
| the requests below | routes, limits and meters them |
| other paths under \`/v1\`, \`/v1beta\`, \`/v1beta1\`, \`/v1alpha\`, and behind \`/upload\` and \`/download\` (Gemini's files) | forwards them unchanged if a route takes them |
| any other path | forwards it unchanged if a route names it |

- A \`GET\` can also be a \`HEAD\`.
- Requests under \`/v1beta\` work under \`/v1alpha\` and \`/v1beta1\` too. Requests under \`/v1beta/models/{model}:\` also
  work under \`/v1/models/{model}:\` and, as in Vertex AI, behind a project, a publisher or both.
- Azure's \`/openai/...\` and \`/openai/v1/...\` mean \`/v1/...\`. So does \`/openai/deployments/{model}/...\` for requests with
  the model in the body. They go upstream under \`/v1\`, without \`api-version\`, unless a route names them.

## Key

Send the key in \`Authorization: Bearer\`, \`x-api-key\`, \`x-goog-api-key\`, \`api-key\`, \`x-gateway-key\`, \`?key=\` or \`?api-key=\`. It never
goes upstream.

## Response headers

Every response has:

${headerTable(api, name => OWN.includes(name))}

A response from an upstream can also have:

${headerTable(api, name => !OWN.includes(name))}

For a key with limits, the response also says [what is left of them](../limits.md#what-the-client-sees).

An error of the gateway has the format of the path's protocol. See [errors](../errors.md).

${sections.join('\n\n')}
`
}

function headerTable(api: OpenAPIV3_1.Document, belongs: (name: string) => boolean): string {
  const headers = Object.entries(api.components?.headers ?? {}).filter(([name]) => belongs(name))
  return table(['Header', 'Meaning'], headers.map(
    ([name, header]) => [code(name), plain('description' in header ? header.description ?? '' : '')],
  ))
}

interface NamedOperation {
  /** Its method and path. */
  readonly name: string
  readonly operation: OpenAPIV3_1.OperationObject
}

function operationsOf(api: OpenAPIV3_1.Document, tag: string): NamedOperation[] {
  return Object.entries(api.paths ?? {}).flatMap(([path, item]) => METHODS.flatMap(method => {
    const operation = item?.[method]
    return operation?.tags?.[0] === tag ? [{ name: code(`${method.toUpperCase()} ${path}`), operation }] : []
  }))
}

function rowsOf(api: OpenAPIV3_1.Document, tag: string): string[][] {
  return operationsOf(api, tag).map(
    ({ name, operation }) => [name, plain(operation.summary ?? ''), body(operation), response(operation)],
  )
}

function body({ requestBody }: OpenAPIV3_1.OperationObject): string {
  return requestBody && 'content' in requestBody ? kinds(requestBody.content) : '-'
}

function response({ responses }: OpenAPIV3_1.OperationObject): string {
  const { 101: socket, 200: ok } = responses as Record<string, OpenAPIV3_1.ResponseObject>
  return socket ? 'WebSocket' : kinds(ok?.content ?? {})
}

const KINDS: Readonly<Record<string, string>> = {
  'application/json': 'JSON', 'multipart/form-data': 'form', 'text/event-stream': 'events',
  'text/plain': 'text', 'audio/*': 'sound',
}

function kinds(content: object): string {
  return Object.keys(content).map(type => KINDS[type] ?? type).join(' or ')
}

/** A table of the parameters of a section's requests, or nothing. */
function parametersOf(api: OpenAPIV3_1.Document, tag: string): string {
  const rows = operationsOf(api, tag).flatMap(({ name, operation: { parameters = [] } }) => parameters.flatMap(
    parameter => ('in' in parameter && parameter.in !== 'path' ? [[name, parameterName(parameter), plain(parameter.description ?? '')]] : []),
  ))
  return rows.length === 0 ? '' : table(['Request', 'Parameter', 'Meaning'], rows)
}

function parameterName({ name, in: place }: OpenAPIV3_1.ParameterObject): string {
  return code(place === 'query' ? `?${name}=` : name)
}
