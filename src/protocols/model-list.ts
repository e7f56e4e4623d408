import type { IncomingHttpHeaders } from 'node:http'
import type { ProtocolName } from './shared/names.ts'

/**
 * In which of the three shapes a caller reads what the path alone does not
 * decide: all of them ask for /v1/models, and only their headers tell them apart.
 *
 * @param byPath the family of the path; /v1beta is the generate family's alone
 * @param hasGoogleKey the key came as `?key=`
 */
export function callerShape(
  byPath: ProtocolName, headers: IncomingHttpHeaders, hasGoogleKey: boolean,
): ProtocolName {
  if (byPath === 'messages') return byPath
  if (byPath === 'generate' || hasGoogleKey || headers['x-goog-api-key'] !== undefined) return 'generate'
  const versioned = headers['anthropic-version'] !== undefined || headers['vendorb-version'] !== undefined
  return versioned ? 'messages' : 'chat'
}

/** The whole list as JSON text; it has one page. */
export function modelList(shape: ProtocolName, models: readonly string[]): string {
  switch (shape) {
    case 'chat':
      return JSON.stringify({ object: 'list', data: models.map(chatCard) })
    case 'messages':
      return JSON.stringify({
        data: models.map(messagesCard),
        has_more: false,
        first_id: models[0] ?? null,
        last_id: models.at(-1) ?? null,
      })
    case 'generate':
      return JSON.stringify({ models: models.map(generateCard) })
  }
}

/** One entry of the list as JSON text. */
export function modelCard(shape: ProtocolName, model: string): string {
  const card = { chat: chatCard, messages: messagesCard, generate: generateCard }[shape]
  return JSON.stringify(card(model))
}

// Nobody knows when a model was made that an operator named: the shapes want a date all the same.
const CREATED = 1_700_000_000

function chatCard(id: string) {
  return { id, object: 'model', created: CREATED, owned_by: 'gateway' }
}

function messagesCard(id: string) {
  return { type: 'model', id, display_name: id, created_at: new Date(CREATED * 1000).toISOString() }
}

function generateCard(id: string) {
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: '001',
    displayName: id,
    supportedGenerationMethods: [
      'generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents',
    ],
  }
}
