import type { Json } from '../json.ts'
import type { SimulatedRequest } from '../request.ts'
import { json, type SimulatedResponse } from '../simulated-response.ts'

/** The models in the list. Requests for any other model are served too. */
const MODELS = ['sim', 'sim-embedding', 'sim-image', 'sim-speech', 'sim-transcription'] as const

/** GET /v1/models and /v1beta/models, in the format of the family. */
export function listModels(request: SimulatedRequest): SimulatedResponse {
  const data = MODELS.map(id => modelObject(request, id))
  switch (request.family) {
    case 'chat': return json({ object: 'list', data })
    case 'messages': return json({ data, has_more: false, first_id: MODELS[0], last_id: MODELS.at(-1) })
    case 'generate': return json({ models: data })
  }
}

/** GET /v1/models/{id} and /v1beta/models/{id}. Every model exists. */
export function getModel(request: SimulatedRequest): SimulatedResponse {
  return json(modelObject(request, request.model))
}

function modelObject(request: SimulatedRequest, id: string): Json {
  switch (request.family) {
    case 'chat':
      return { id, object: 'model', created: request.now, owned_by: 'simulator' }
    case 'messages':
      return {
        type: 'model',
        id,
        display_name: `Simulated ${id}`,
        created_at: new Date(request.now * 1000).toISOString(),
        deprecated_at: null,
        retires_at: null,
        lifecycle: 'active',
        line: null,
        max_input_tokens: 200_000,
        max_tokens: 64_000,
        capabilities: null,
      }
    case 'generate':
      return {
        name: `models/${id}`,
        version: '1',
        displayName: `Simulated ${id}`,
        description: 'A model that says what it is asked to say.',
        inputTokenLimit: 1_048_576,
        outputTokenLimit: 65_536,
        supportedGenerationMethods: [
          'generateContent', 'streamGenerateContent', 'countTokens', 'embedContent', 'batchEmbedContents',
        ],
        temperature: 1,
        topP: 0.95,
        topK: 64,
        maxTemperature: 2,
        thinking: true,
      }
  }
}
