import type { OpenAPIV3_1 } from 'openapi-types'
import { code, generatedFrom, plain, table } from './markdown.ts'

const TITLES: Readonly<Record<string, string>> = {
  session: 'Session', panel: 'Panel', billing: 'Billing', logs: 'Logs', keys: 'Keys', routes: 'Routes and models',
}

/** docs/reference/console-api.md: the same as the OpenAPI document, for people. */
export function consoleApiPage(api: OpenAPIV3_1.Document): string {
  const sections = Object.entries(TITLES).map(([tag, title]) => `## ${title}\n\n${table(
    ['Request', 'Purpose', 'Users', 'Parameters'], rowsOf(api, tag),
  )}`)
  return `${generatedFrom('src/console/api/api.ts')}

# Console API

${plain(api.info.description ?? '')} See [how to log in from a script](../console.md#from-a-script).

- The OpenAPI 3.1 document: <a href="../console-openapi.json" target="_self">console-openapi.json</a>. A running gateway
  serves it at \`/console/api/openapi.json\`, after login.
- Parameters with \`?\` belong to the query, others to the JSON body. Parameters are optional unless marked as required;
  members of the body are required unless marked as optional.
- The response is 200 with JSON, or with CSV if the path ends in \`.csv\`. Another status is in brackets.

${sections.join('\n\n')}
`
}

function rowsOf(api: OpenAPIV3_1.Document, tag: string): string[][] {
  return Object.entries(api.paths ?? {}).flatMap(([path, item]) =>
    Object.entries(item ?? {}).flatMap(([method, operation]) => {
      const { tags, summary = '', description = '' } = operation as OpenAPIV3_1.OperationObject
      if (tags?.[0] !== tag) return []
      return [[
        code(`${method.toUpperCase()} ${path}`), plain(summary) + response(operation as OpenAPIV3_1.OperationObject),
        plain(description.replace(/^For (.*)\.$/, '$1')), parametersOf(operation as OpenAPIV3_1.OperationObject),
      ]]
    }))
}

function parametersOf({ parameters = [], requestBody }: OpenAPIV3_1.OperationObject): string {
  const queries = parameters.flatMap(parameter => ('in' in parameter && parameter.in === 'query' ? [parameter] : []))
  const texts = queries.map(({ name, required }) => code(`?${name}=`) + (required ? ' (required)' : ''))
  const body = requestBody && 'content' in requestBody ? members(requestBody.content['application/json']?.schema) : ''
  return [...texts, ...body === '' ? [] : [body]].join(', ') || '-'
}

/** Of a choice, those of each. */
function members(schema: unknown): string {
  const { properties = {}, required = [], anyOf } = schema as
    { properties?: Record<string, unknown>; required?: string[]; anyOf?: unknown[] }
  if (anyOf) return anyOf.map(members).join(' or ')
  return Object.keys(properties).map(name => code(name) + (required.includes(name) ? '' : ' (optional)')).join(', ')
}

/** A status other than 200. */
function response({ responses = {} }: OpenAPIV3_1.OperationObject): string {
  const [status = '', found] = Object.entries(responses).find(([status]) => /^2\d\d$/.test(status)) ?? []
  const hasBody = found && 'content' in found && Object.keys(found.content ?? {}).length > 0
  return status === '200' ? '' : ` (${status}${hasBody ? '' : ', no body'})`
}
