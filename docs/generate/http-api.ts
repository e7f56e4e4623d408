import type { OpenAPIV3_1 } from 'openapi-types'
import { code, generatedFrom, plain, table } from './markdown.ts'
import { OWN } from './openapi.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** docs/reference/http-api.md: the same as the OpenAPI document, for people. */
export function httpApiPage(api: OpenAPIV3_1.Document): string {
  const sections = (api.tags ?? []).map(({ name }) => `## ${name}\n\n${table(
    ['Request', 'What for', 'Body', 'Answer', 'Besides'], rowsOf(api, name),
  )}`)
  return `${generatedFrom('src/protocols/endpoint.ts')}

# HTTP API

For machines: <a href="../openapi.json" target="_self">openapi.json</a> (OpenAPI 3.1).

${plain(api.info.description ?? '')} Any other path under \`/v1\`, \`/v1beta\`, \`/v1beta1\` or
\`/v1alpha\`, and behind \`/upload\` or \`/download\` (Gemini's files), is forwarded as it is if a route takes it, and a
path elsewhere if a route names it. A \`GET\` may also be a
\`HEAD\`. What stands under \`/v1beta\` is served under \`/v1alpha\` and \`/v1beta1\` too, and what stands under
\`/v1beta/models/{model}:\` under \`/v1/models/{model}:\` and, as Vertex AI has it, behind a project, a publisher, or both.
Azure's paths mean those under \`/v1\`: \`/openai/...\`, \`/openai/v1/...\`, and \`/openai/deployments/{model}/...\` for what
names its model in the body. They go up under \`/v1\`, without \`api-version\`, unless a route names them.

A key is taken from \`Authorization: Bearer\`, \`x-api-key\`, \`x-goog-api-key\`, \`api-key\`, \`?key=\` or
\`?api-key=\`, and never goes upstream.

Every answer carries:

${headerTable(api, name => OWN.includes(name))}

And one that an upstream gave:

${headerTable(api, name => !OWN.includes(name))}

For a key with limits, [how much is left of them](../limits.md#what-the-client-sees) comes with these.

An error of the gateway has the shape of the path's protocol: see [errors](../errors.md).

${sections.join('\n\n')}
`
}

function headerTable(api: OpenAPIV3_1.Document, belongs: (name: string) => boolean): string {
  const headers = Object.entries(api.components?.headers ?? {}).filter(([name]) => belongs(name))
  return table(['Header', 'Meaning'], headers.map(
    ([name, header]) => [code(name), plain('description' in header ? header.description ?? '' : '')],
  ))
}

function rowsOf(api: OpenAPIV3_1.Document, tag: string): string[][] {
  return Object.entries(api.paths ?? {}).flatMap(([path, item]) => METHODS.flatMap(method => {
    const operation = item?.[method]
    if (operation?.tags?.[0] !== tag) return []
    return [[code(`${method.toUpperCase()} ${path}`), plain(operation.summary ?? ''), body(operation), answer(operation), besides(operation)]]
  }))
}

function body({ requestBody }: OpenAPIV3_1.OperationObject): string {
  return requestBody && 'content' in requestBody ? kinds(requestBody.content) : '-'
}

function answer({ responses }: OpenAPIV3_1.OperationObject): string {
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

function besides({ parameters = [] }: OpenAPIV3_1.OperationObject): string {
  const others = parameters.flatMap(parameter => ('in' in parameter && parameter.in !== 'path' ? [parameter] : []))
  return others.map(({ name, in: place, description = '' }) => `${code(place === 'query' ? `?${name}=` : name)}: ${plain(description)}`).join('; ')
}
