import t from 'tap'
import type { JsonObject } from '../../../src/protocols/neutral/json.ts'
import { KEY } from '../../support/gateway.ts'
import { startTranslating } from '../../support/translating-gateway.ts'
import { requestBetween } from '../../support/translation.ts'

const CLIENTS: Readonly<Record<string, { path: string; prompt: string; content: string; shape: JsonObject }>> = {
  chat: { path: '/v1/chat/completions', prompt: 'messages', content: 'content', shape: { type: 'invalid_request_error', param: String } },
  messages: { path: '/v1/messages', prompt: 'messages', content: 'content', shape: { type: 'invalid_request_error' } },
  responses: { path: '/v1/responses', prompt: 'input', content: 'content', shape: { type: 'invalid_request_error', param: String } },
  generate: { path: '/v1beta/models/m:generateContent', prompt: 'contents', content: 'parts', shape: { code: 400, status: 'INVALID_ARGUMENT' } },
}

for (const [client, { path, prompt, content, shape }] of Object.entries(CLIENTS)) {
  for (const to of Object.keys(CLIENTS).filter(name => name !== client)) {
    t.test(`${client} to ${to}: a field of a wrong type is refused and named in the error, and nothing goes upstream`, async t => {
      const { gateway, seen } = await startTranslating(t, { up: { speaks: to, responses: [{ body: {} }] } })
      const good = [{ role: 'user', [content]: client === 'generate' ? [{ text: 'hi' }] : 'hi' }]
      const cases: [unknown, string][] = [
        [{ [prompt]: 5 }, prompt], [{ [prompt]: true }, prompt],
        [{ [prompt]: [5] }, `${prompt}[0]`], [{ [prompt]: [...good, null] }, `${prompt}[1]`], [{ [prompt]: [[]] }, `${prompt}[0]`],
        [{ [prompt]: [{ role: 'user', [content]: 7 }] }, content],
        [{ [prompt]: [{ role: 'user', [content]: [7] }] }, `${content}[0]`],
        [{ [prompt]: good, tools: 'x' }, 'tools'], [{ [prompt]: good, tools: [7] }, 'tools[0]'],
        [{ [prompt]: good, ...client === 'generate' ? { generationConfig: { temperature: 'x' } } : { temperature: 'x' } }, 'temperature'],
      ]
      // The generate protocol accepts an object in place of a list of one object.
      if (client !== 'generate') {
        cases.push([{ [prompt]: {} }, prompt], [{ [prompt]: [{ role: 'user', [content]: {} }] }, content])
        cases.push([{ [prompt]: good, tools: { a: 1 } }, 'tools'])
      }
      if (client !== 'responses') cases.push([{ [prompt]: null }, prompt], [{ [prompt]: 'hi' }, prompt])
      for (const [members, named] of cases) {
        const body = JSON.stringify({ model: 'm', max_tokens: 5, ...members as object })
        const response = await fetch(gateway.url + path, {
          method: 'POST', body, headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
        })
        const text = await response.text()
        t.equal(response.status, 400, `${body}: ${text}`)
        t.match(JSON.parse(text), { error: { ...shape, message: `${named}: it must be` } }, body)
      }
      t.strictSame(seen, { up: [] })
    })
  }
}

/** Members by their required type. In a path, `[]` is a list of one item. */
interface Members {
  readonly numbers: string
  readonly truths: string
  readonly texts: string
  readonly lists: string
  readonly objects: string
  readonly words: string
}

const MEMBERS: Readonly<Record<string, Members>> = {
  chat: {
    numbers: 'max_tokens max_completion_tokens temperature top_p top_k presence_penalty frequency_penalty seed',
    truths: 'stream parallel_tool_calls stream_options.include_usage tools[].function.strict',
    texts: `reasoning_effort verbosity service_tier safety_identifier user prompt_cache_key metadata.a
      messages[].name messages[].content[].type messages[].content[].text tools[].function.name tools[].function.description
      response_format.json_schema.name`,
    lists: 'stop messages[].tool_calls',
    objects: 'response_format stream_options metadata tools[].function tools[].function.parameters tool_choice',
    words: 'messages[].role response_format.type tool_choice',
  },
  responses: {
    numbers: 'max_output_tokens temperature top_p',
    truths: 'stream parallel_tool_calls tools[].strict',
    texts: `instructions text.verbosity service_tier safety_identifier user prompt_cache_key metadata.a reasoning.effort
      reasoning.summary input[].type input[].content[].text tools[].name tools[].description text.format.name`,
    lists: 'input[].content tools',
    objects: 'text text.format reasoning metadata tools[].parameters tool_choice',
    words: 'input[].role text.format.type tool_choice',
  },
  messages: {
    numbers: 'max_tokens temperature top_p top_k thinking.budget_tokens',
    truths: 'stream tool_choice.disable_parallel_tool_use tools[].strict',
    texts: `output_config.effort service_tier metadata.user_id thinking.display messages[].content[].text tools[].name tools[].description
      messages[].content[].cache_control.ttl`,
    lists: 'stop_sequences system messages[].content',
    objects: 'tool_choice thinking output_config output_config.format metadata tools[].input_schema messages[].content[].cache_control',
    words: 'messages[].role tool_choice.type',
  },
  generate: {
    numbers: ['maxOutputTokens', 'temperature', 'topP', 'topK', 'presencePenalty', 'frequencyPenalty', 'seed', 'thinkingConfig.thinkingBudget']
      .map(name => `generationConfig.${name}`).join(' '),
    truths: 'generationConfig.thinkingConfig.includeThoughts contents[].parts[].thought',
    texts: `generationConfig.responseMimeType generationConfig.thinkingConfig.thinkingLevel serviceTier labels.a contents[].parts[].text
      contents[].parts[].thoughtSignature tools[].functionDeclarations[].name`,
    lists: 'generationConfig.stopSequences toolConfig.functionCallingConfig.allowedFunctionNames contents[].parts[].functionResponse.parts',
    objects: `generationConfig generationConfig.thinkingConfig generationConfig.responseSchema toolConfig toolConfig.functionCallingConfig labels
      systemInstruction contents[].parts[].inlineData tools[].functionDeclarations[].parameters`,
    words: 'contents[].role toolConfig.functionCallingConfig.mode',
  },
}

const WRONG: Readonly<Record<keyof Members, readonly unknown[]>> = {
  numbers: ['x', '', true, {}, []], truths: ['yes', 1, {}], texts: [5, true, {}, []], lists: [7, true], objects: [5, [], true], words: ['other', 5, true],
}

/** Other members that the object needs. */
const BESIDE: Readonly<Record<string, Readonly<Record<string, JsonObject>>>> = {
  chat: { 'messages[]': { role: 'assistant' }, 'messages[].content[]': { type: 'text' }, 'tools[]': { type: 'function' }, response_format: { type: 'json_schema' } },
  responses: { 'input[]': { role: 'user' }, 'input[].content[]': { type: 'input_text' }, 'tools[]': { type: 'function' }, 'text.format': { type: 'json_schema' } },
  messages: { 'messages[].content[]': { type: 'text' }, 'tools[]': { input_schema: {} }, tool_choice: { type: 'auto' } },
  generate: {},
}

/** @returns the smallest body with the value at the path */
function bodyWith(protocol: string, path: string, value: unknown): JsonObject {
  const steps = path.split('.')
  return steps.reduceRight<unknown>((inner, step, at) => {
    const object = at === 0 ? {} : BESIDE[protocol]?.[steps.slice(0, at).join('.')]
    return step.endsWith('[]') ? { ...object, [step.slice(0, -2)]: [inner] } : { ...object, [step]: inner }
  }, value) as JsonObject
}

for (const [from, members] of Object.entries(MEMBERS)) {
  for (const to of Object.keys(MEMBERS).filter(name => name !== from)) {
    t.test(`${from} to ${to}: the error for a field of a wrong type names the path of the field`, async t => {
      for (const [kind, paths] of Object.entries(members)) {
        for (const path of paths.split(/\s+/)) {
          for (const value of WRONG[kind as keyof Members]) {
            const exact = path.replaceAll('[]', '[0]')
            t.throws(() => requestBetween(from, to, bodyWith(from, path, value)), { code: 'not_translatable', param: exact, message: `${exact}: it must be` },
              `${path}: ${JSON.stringify(value)}`)
          }
          t.doesNotThrow(() => requestBetween(from, to, bodyWith(from, path, null)), `${path}: null`)
        }
      }
    })
  }
}

t.test('every spelling and form that a vendor accepts is translated', async t => {
  const { body } = requestBetween('generate', 'chat', {
    contents: [{ role: 'user', parts: [{ text: 'Hi' }] }, { role: 'model', parts: { functionCall: { name: 'f' } } },
      { parts: { functionResponse: { name: 'f', response: { output: 'x' }, parts: { inlineData: { mimeType: 'image/png', data: 'AAAA' } } } } }],
    generation_config: {
      max_output_tokens: '10', temperature: '0.5', stop_sequences: 'end', candidate_count: '1', response_modalities: 'TEXT', response_mime_type: 'APPLICATION/JSON',
      thinking_config: { include_thoughts: 'true', thinking_level: 'high' },
    },
    tool_config: { function_calling_config: { mode: 'any', allowed_function_names: 'f' } }, tools: { function_declarations: { name: 'f' } },
  })
  t.match(body, {
    max_tokens: 10, temperature: 0.5, stop: ['end'], reasoning_effort: 'high', response_format: { type: 'json_object' },
    tool_choice: { type: 'function', function: { name: 'f' } },
  })
  t.match(JSON.stringify(body), /image_url.*AAAA/)
  t.match(requestBetween('chat', 'messages', { messages: [], stop: 'end' }).body, { stop_sequences: ['end'] })
  t.throws(() => requestBetween('chat', 'messages', { messages: [], max_tokens: '10' }), { message: 'max_tokens: it must be a number' })
})
