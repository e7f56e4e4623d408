import type { OpenAPIV3_1 } from 'openapi-types'

const text = { type: 'string' } as const
const count = { type: 'integer', minimum: 0 } as const

/** The shapes that the gateway itself reads or writes; each protocol has further members, which pass unchanged. */
export const SCHEMAS: Record<string, OpenAPIV3_1.SchemaObject> = {
  AnyRequest: {
    type: 'object',
    description: 'A request of the protocol. The gateway reads the model and whether it is a stream.',
    properties: { model: text, stream: { type: 'boolean' } },
  },
  AnyResponse: { description: 'The unchanged response of the upstream.' },
  Message: {
    type: 'object',
    required: ['role', 'content'],
    properties: { role: { ...text, examples: ['user', 'assistant'] }, content: {} },
  },
  ChatRequest: {
    type: 'object',
    required: ['model', 'messages'],
    properties: {
      model: text,
      messages: { type: 'array', items: { $ref: '#/components/schemas/Message' } },
      stream: { type: 'boolean', description: 'true: server-sent events.' },
      stream_options: {
        type: 'object',
        properties: { include_usage: { type: 'boolean', description: 'true: the stream reports usage.' } },
      },
      max_tokens: { ...count, description: 'Includes reasoning.' },
      max_completion_tokens: count,
      temperature: { type: 'number' },
    },
    examples: [{ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }],
  },
  ChatResponse: {
    type: 'object',
    properties: {
      id: text,
      choices: {
        type: 'array',
        items: { type: 'object', properties: { message: { $ref: '#/components/schemas/Message' }, finish_reason: text } },
      },
      usage: { $ref: '#/components/schemas/Usage' },
    },
  },
  Usage: {
    type: 'object',
    properties: {
      prompt_tokens: { ...count, description: 'Tokens of the prompt, with cached ones.' },
      completion_tokens: { ...count, description: 'Generated tokens, with reasoning.' },
      total_tokens: count,
      prompt_tokens_details: { type: 'object', properties: { cached_tokens: count } },
      completion_tokens_details: { type: 'object', properties: { reasoning_tokens: count } },
    },
  },
  MessagesRequest: {
    type: 'object',
    required: ['model', 'max_tokens', 'messages'],
    properties: {
      model: text,
      max_tokens: count,
      messages: { type: 'array', items: { $ref: '#/components/schemas/Message' } },
      stream: { type: 'boolean' },
    },
    examples: [{ model: 'demo', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }],
  },
  CountTokensRequest: {
    type: 'object',
    required: ['model', 'messages'],
    properties: { model: text, messages: { type: 'array', items: { $ref: '#/components/schemas/Message' } } },
    examples: [{ model: 'demo', messages: [{ role: 'user', content: 'Hello' }] }],
  },
  GenerateRequest: {
    type: 'object',
    required: ['contents'],
    properties: { contents: { type: 'array', items: { type: 'object' } } },
    examples: [{ contents: [{ role: 'user', parts: [{ text: 'Hello' }] }] }],
  },
  ModelList: {
    type: 'object',
    description: "OpenAI's format. Anthropic's for a request with anthropic-version, Google's for one with " +
      'x-goog-api-key or ?key=, and under /v1beta.',
    properties: {
      object: { const: 'list' },
      data: { type: 'array', items: { type: 'object', required: ['id'], properties: { id: text } } },
    },
  },
  Status: {
    type: 'object',
    required: ['success', 'version', 'status', 'running'],
    properties: {
      success: { type: 'boolean', description: 'true: the gateway takes requests.' },
      version: text,
      status: { ...text, description: 'ok, draining or handing_over.' },
      running: { ...count, description: 'Running requests.' },
      worker: { ...count, description: 'Which of several workers responds.' },
      body_bytes: { ...count, description: 'Bytes of bodies in memory, of server.body_memory.' },
      config: { type: 'object', description: 'When the configuration was loaded, and why the last reload was rejected.' },
      ledger: {
        type: ['object', 'null'],
        description: 'The state of the ledger. null: no ledger is configured.',
        required: ['healthy', 'waiting', 'lost', 'error'],
        properties: {
          healthy: { type: 'boolean', description: 'false: rows cannot be written and wait.' },
          waiting: { ...count, description: 'Rows in memory that are not written yet.' },
          lost: { ...count, description: 'Rows that are lost.' },
          error: { type: ['string', 'null'], description: 'Why rows are not written; the full text on console.listen only.' },
        },
      },
      upstreams: {
        type: 'array',
        description: 'On console.listen only: the circuit of each target that was tried. Also, with an empty model, ' +
          'upstreams that fail their health check before any of their targets was tried.',
        items: {
          type: 'object',
          required: ['upstream', 'model', 'circuit', 'opens_in_ms', 'in_flight', 'first_byte_ms'],
          properties: {
            upstream: text,
            model: text,
            circuit: { enum: ['closed', 'open', 'probing'] },
            opens_in_ms: { type: ['integer', 'null'], description: 'null: after the next successful health check.' },
            in_flight: count,
            first_byte_ms: { type: ['integer', 'null'], description: 'Moving average; null: no value yet.' },
          },
        },
      },
    },
  },
  ChatError: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['message', 'type', 'param', 'code'],
        properties: { message: text, type: text, param: { type: ['string', 'null'] }, code: text },
      },
    },
  },
  MessagesError: {
    type: 'object',
    required: ['type', 'error', 'request_id'],
    properties: {
      type: { const: 'error' },
      error: { type: 'object', required: ['type', 'message'], properties: { type: text, message: text } },
      request_id: text,
    },
  },
  GenerateError: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'status', 'details'],
        properties: {
          code: { type: 'integer' }, message: text, status: text, details: { type: 'array', items: { type: 'object' } },
        },
      },
    },
  },
}
