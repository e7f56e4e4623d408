import { readFileSync } from 'node:fs'

interface HookSchema {
  readonly title: string
  readonly $defs: Readonly<Record<string, unknown>>
}

/** The OpenAPI description of a hook, with the schemas of hook.schema.json: what an operator's service has to serve. */
export function hookOpenApi(): string {
  const schema = JSON.parse(readFileSync(new URL('../public/hook.schema.json', import.meta.url), 'utf8')) as HookSchema
  const header = (name: string, description: string, required: boolean) =>
    ({ name, in: 'header', required, description, schema: { type: 'string' } })
  const document = {
    openapi: '3.1.0',
    info: { title: schema.title, version: '1', description: 'The service of an operator that a gateway asks about requests. The path is that of its url.' },
    paths: {
      '/check': {
        post: {
          operationId: 'check',
          summary: 'Decide about a request, or receive a copy',
          parameters: [
            header('webhook-id', 'The id of the call. A call that is sent again has the same id.', true),
            header('webhook-timestamp', 'When the call was signed, in seconds since 1970. Refuse calls that differ by more than 5 minutes.', true),
            header('webhook-signature', 'With a secret: v1, and the HMAC-SHA256 of id.timestamp.body in base64.', false),
            header('x-gateway-hook', 'The name of the hook.', true),
            header('x-gateway-hook-version', 'The version of the schema: 1.', true),
            header('x-request-id', 'The id of the request.', true),
          ],
          requestBody: { required: true, content: { 'application/json': { schema: { $ref: '#/components/schemas/Call' } } } },
          responses: {
            200: { description: 'The decision', content: { 'application/json': { schema: { $ref: '#/components/schemas/Reply' } } } },
            204: { description: 'allow' },
          },
        },
      },
    },
    components: { schemas: schema.$defs },
  }
  return `${JSON.stringify(document, null, 2).replaceAll('"#/$defs/', '"#/components/schemas/')}\n`
}
